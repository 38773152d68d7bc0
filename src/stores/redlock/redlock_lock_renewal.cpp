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

extension read_extension(const redis::reply_value& answer) {
  if (answer.type != redis::reply_kind::text) return {true, {}, {}, answer.integer != 0};
  const auto holder = redis::parse_holder(text_of(answer));
  return {true, std::string{text_of(answer)}, holder ? holder->token : fencing_token{}, false};
}

}  // namespace

std::shared_ptr<gather> ask_to_extend(const node_set& on, fan_out::connections via,
                                      std::span<const held> leases) {
  std::vector<std::string_view> keys{record_key};
  std::vector<std::string> ttls;
  ttls.reserve(leases.size());
  std::vector<std::string_view> args{{}};
  for (const auto& one : leases) {
    keys.push_back(static_cast<redlock_lock*>(one.lock)->key());
    args.push_back(one.id.text());
    args.push_back(ttls.emplace_back(milliseconds_text(one.ttl)));
  }
  auto asked = std::make_shared<gather>(std::move(via), on.config.node_timeout, nullptr);
  for (std::size_t i = 0; i < on.size(); ++i) {
    args[0] = on.config_of(i);
    asked->ask(i, {scripts::extend, keys, args});
  }
  return asked;
}

extensions read_extensions(node_set& on, std::size_t leases, const gather::answers& answers) {
  extensions all;
  all.of_lease.assign(leases, std::vector<extension>(answers.size()));
  for (std::size_t i = 0; i < answers.size(); ++i) {
    auto answer = usable_answer(answers[i], on.names()[i], on.identity());
    if (!answer) {
      const bool refused = answers[i] && *answers[i];
      if (refused && asks_for_admission(***answers[i])) on.look_after_nodes();
      all.why.nodes.push_back({on.names()[i], std::move(answer.error().message)});
      continue;
    }
    const auto fields = elements_of(**answer);
    if (fields.size() != leases + 2) continue;
    all.clocks.emplace_back(i, redis::read_time(*fields[0], *fields[1]));
    for (std::size_t l = 0; l < leases; ++l)
      all.of_lease[l][i] = read_extension(*fields[l + 2]);
  }
  return all;
}

void redlock_lock::repair(std::size_t node, const core::owner_id& id, const std::string& value,
                          core::duration ttl) {
  const auto holder = redis::parse_holder(value);
  if (!holder) return;
  const auto ttl_text = milliseconds_text(ttl);
  const auto token = to_string(holder->token);
  // As source: sent again for a node that does not know it, it would come after the release.
  const auto set_again = request{
      scripts::repair,
      {key_, record_key},
      {set_->config_of(node), counter_field_, value, ttl_text,
       token}}.as_source();
  // Under the mutex that a release takes first, and on the connection that it takes: a lock that is
  // given back is not brought back.
  const std::lock_guard guard{m_};
  if (!held_.contains(id)) return;
  set_->calls()[node]->send(set_again, nullptr);
}

fencing_token redlock_lock::token_of(const core::owner_id& id) {
  const std::lock_guard guard{m_};
  const auto known = held_.find(id);
  return known == held_.end() ? fencing_token{} : known->second;
}

renewal redlock_lock::judge(const core::owner_id& id, core::duration ttl,
                            core::time_point counted_from, std::span<const extension> said) {
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
      return {true, loss::none, ttl, counted_from, best.token};
    }
    case outcome::lost:
      // What is left of it on a minority keeps others from a majority.
      release_later(id, core::after(runtime::now(), ttl));
      return {false, round.why(), {}, {}, {}};
    case outcome::undecided:
    case outcome::failed:
      break;
  }
  return {};
}

void redlock_lock::extend(const core::owner_id& id, fencing_token /*token*/, core::duration ttl,
                          core::time_point until, caller& by, on_renewal done) {
  const held lease{this, id, ttl};
  const auto counted_from = runtime::now();
  ask_to_extend(*set_, set_->calls(), {&lease, 1})
      ->collect(until, by, [this, id, ttl, counted_from, done = std::move(done)](auto answers) {
        done(judge_by_hand(id, ttl, counted_from, answers));
      });
}

result<renewal> redlock_lock::judge_by_hand(const core::owner_id& id, core::duration ttl,
                                            core::time_point counted_from,
                                            const gather::answers& answers) {
  auto said = read_extensions(*set_, 1, answers);
  const auto got = judge(id, ttl, counted_from, said.of_lease[0]);
  if (!got.renewed && got.why == loss::none) return fail(std::move(said.why));
  if (got.renewed) {
    // An adopted lease is ours from here on.
    const std::lock_guard guard{m_};
    held_.try_emplace(id, got.token);
    handed_on_.erase(id);
  }
  return got;
}

}  // namespace holdfast::stores::redlock
