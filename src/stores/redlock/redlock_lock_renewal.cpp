// How redlock_lock keeps what it was granted: renews it, and sets it again where it is missing.
#include "core/planted.hpp"
#include "core/renewal_round.hpp"
#include "redlock_scripts.hpp"
#include "runtime/clock.hpp"
#include "stores/redis/script_values.hpp"
#include "stores/redlock/redlock_lock.hpp"

namespace holdfast::stores::redlock {

namespace {

using core::planted;
using core::planted_bug;
using redis::elements_of;
using redis::milliseconds_text;
using redis::text_of;

}  // namespace

extension read_extension(const redis::reply_value& answer) {
  if (answer.type != redis::reply_kind::text) return {true, {}, {}, answer.integer != 0};
  const auto holder = redis::parse_holder(text_of(answer));
  return {true, std::string{text_of(answer)}, holder ? holder->token : fencing_token{}, false};
}

void redlock_lock::repair(std::size_t node, const core::owner_id& id, const std::string& value,
                          core::duration ttl) {
  const auto holder = redis::parse_holder(value);
  if (!holder) return;
  const auto ttl_text = milliseconds_text(ttl);
  const auto token = to_string(holder->token);
  const std::array<std::string_view, 2> keys{key_, record_key};
  const std::array<std::string_view, 5> args{set_->nodes()[node].config, counter_field_, value,
                                             ttl_text, token};
  // Under the mutex that a release takes first, and on the connection that it takes: a lock that is
  // given back is not brought back.
  const std::lock_guard guard{m_};
  if (!held_.contains(id)) return;
  // As source: sent again for a node that does not know it, it would come after the release.
  set_->nodes()[node].calls->send({scripts::repair, keys, args, request::form::as_source}, nullptr);
}

fencing_token redlock_lock::token_of(const core::owner_id& id) {
  const std::lock_guard guard{m_};
  const auto known = held_.find(id);
  return known == held_.end() ? fencing_token{} : known->second;
}

result<renewal> redlock_lock::judge(const core::owner_id& id, core::duration ttl,
                                    core::time_point counted_from,
                                    std::span<const extension> said) {
  using outcome = core::renewal_round::outcome;
  const auto token = planted(planted_bug::lease_token) ? fencing_token{UINT64_MAX} : token_of(id);
  core::renewal_round round{said.size(), token};
  for (std::size_t i = 0; i < said.size(); ++i) {
    if (!said[i].known) {
      round.on_silence(i);
    } else if (!said[i].value.empty()) {
      round.on_extended(i, said[i].token);
    } else {
      round.on_answer(
          i, said[i].taken ? core::renewal_round::said::taken : core::renewal_round::said::gone);
    }
  }
  if (planted(planted_bug::repair_sure) && round.best() && round.result() != outcome::renewed) {
    for (std::size_t i = 0; i < said.size(); ++i) {
      const bool gone = said[i].known && said[i].value.empty() && !said[i].taken;
      if (gone) repair(i, id, said[*round.best()].value, ttl);
    }
  }
  switch (round.result()) {
    case outcome::renewed: {
      const auto& best = said[*round.best()];
      for (const auto node : round.to_repair())
        repair(node, id, best.value, ttl);
      for (std::size_t i = 0; i < said.size() && planted(planted_bug::one_answer); ++i) {
        if (!said[i].value.empty()) repair(i, id, best.value, ttl);
      }
      return renewal{true, loss::none, ttl, counted_from, best.token};
    }
    case outcome::lost:
      // What is left of it on a minority keeps others from a majority.
      release_later(id, core::after(runtime::now(), ttl));
      return renewal{false, round.why(), {}, {}, {}};
    case outcome::undecided:
    case outcome::failed:
      break;
  }
  return renewal{};
}

void redlock_lock::extend(const core::owner_id& id, fencing_token /*token*/, core::duration ttl,
                          core::time_point until, caller& by, on_renewal done) {
  const auto ttl_text = milliseconds_text(ttl);
  const std::array<std::string_view, 2> keys{record_key, key_};
  const auto counted_from = runtime::now();
  const auto asked = set_->ask_all();
  for (std::size_t i = 0; i < set_->nodes().size(); ++i) {
    const std::array<std::string_view, 3> args{set_->nodes()[i].config, id.text(), ttl_text};
    asked->ask(i, {scripts::extend, keys, args});
  }
  asked->collect(until, by, [this, id, ttl, counted_from, done = std::move(done)](auto answers) {
    done(read_extensions(id, ttl, counted_from, answers));
  });
}

result<renewal> redlock_lock::read_extensions(const core::owner_id& id, core::duration ttl,
                                              core::time_point counted_from,
                                              const gather::answers& answers) {
  std::vector<extension> said(answers.size());
  failure why{errc::outcome_unknown, "too few nodes answered", {}};
  for (std::size_t i = 0; i < answers.size(); ++i) {
    auto answer = usable_answer(answers[i], set_->names()[i], set_->set());
    if (!answer) {
      why.nodes.push_back({set_->names()[i], std::move(answer.error().message)});
      continue;
    }
    if (const auto fields = elements_of(**answer); fields.size() == 3) {
      said[i] = read_extension(*fields[2]);
    }
  }
  auto got = judge(id, ttl, counted_from, said);
  if (got && !got->renewed && got->why == loss::none) return fail(std::move(why));
  if (got && got->renewed) {
    // An adopted lease is ours from here on.
    const std::lock_guard guard{m_};
    held_.try_emplace(id, got->token);
    handed_on_.erase(id);
  }
  return got;
}

}  // namespace holdfast::stores::redlock
