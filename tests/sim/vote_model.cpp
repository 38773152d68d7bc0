#include "sim/vote_model.hpp"

#include <charconv>

#include "stores/redis/layout.hpp"
#include "stores/redis/script_values.hpp"

namespace holdfast::sim {

namespace {

using kind = core::vote::kind;
using stores::redis::read_number;

// Answers to an acquire come back with this; those to a raise with what it raises to.
constexpr std::uint64_t to_acquire = 0;

std::optional<core::duration> left(const reply& pttl) {
  if (pttl.integer < 0) return std::nullopt;
  return std::chrono::milliseconds{pttl.integer};
}

// What is no vote: a refusal, or an answer of a shape that no script gives.
std::optional<core::vote> read_no_vote(const reply& answer) {
  if (auto why = read_refusal(answer)) {
    return core::vote{.what = kind::refused, .why = std::move(*why)};
  }
  if (!answer.items.empty()) return std::nullopt;
  return core::vote{.what = kind::failed, .why = {errc::incompatible, answer.shown(), {}}};
}

core::vote read_acquire(const reply& answer) {
  if (auto none = read_no_vote(answer)) return std::move(*none);
  const auto& fields = answer.items;
  switch (fields[0].integer) {
    case 1:
      return {.what = kind::fresh};
    case 2:
      return {.what = kind::stale,
              .counter = read_number(fields[1].text),
              .token = read_number(fields[2].text)};
    default: {
      auto holder = stores::redis::parse_holder(fields[2].text);
      if (!holder) return {.what = kind::refused, .why = std::move(holder.error())};
      return {.what = kind::busy,
              .counter = read_number(fields[3].text),
              .holder = std::move(*holder),
              .remaining = left(fields[1])};
    }
  }
}

core::vote read_raise(const reply& answer, std::uint64_t asked) {
  if (auto none = read_no_vote(answer)) return std::move(*none);
  const auto& fields = answer.items;
  switch (fields[0].integer) {
    case 1:
      return {.what = kind::raised, .counter = asked, .asked = asked};
    case 2:
      return {.what = kind::not_raised, .counter = read_number(fields[1].text), .asked = asked};
    default:
      return {.what = kind::not_ours};
  }
}

}  // namespace

bool asks_for_admission(const reply& answer) {
  const auto& fields = answer.items;
  return fields.size() > 1 && fields[0].type == reply::kind::integer && fields[0].integer == -1 &&
         (fields[1].text == "blank" || fields[1].text == "restarted");
}

std::optional<failure> read_refusal(const reply& answer) {
  const auto& fields = answer.items;
  if (fields.size() < 2 || fields[0].type != reply::kind::integer || fields[0].integer != -1) {
    return std::nullopt;
  }
  const auto& why = fields[1].text;
  const auto code = why == "config"  ? errc::incompatible
                    : why == "ttl"   ? errc::invalid_argument
                    : why == "ahead" ? errc::store_refused
                                     : errc::store_loading;
  return failure{code, why, {}};
}

vote_model::vote_model(process& in, const lines& to, core::duration node_timeout,
                       voter_calls& client, attempt who, const core::quorum_rule& rule,
                       const left_out& without, bool resends)
    : round_model{in, to, node_timeout},
      client_{client},
      who_{std::move(who)},
      ttl_{rule.ttl},
      without_{without},
      resends_{resends},
      machine_{rule} {}

template <class Event>
bool vote_model::tell(Event event) {
  const bool was_over = machine_.over();
  core::quorum_machine::steps next = event(machine_);
  if (machine_.over() && !was_over) to_give_back_.swap(next);
  perform(next);
  return !next.empty();
}

void vote_model::stand(stores::redlock::node_mask at, core::time_point since) {
  for (std::size_t i = 0; i < all().size(); ++i) {
    if (stores::redlock::has(at, i)) machine_.stand(i, since);
  }
}

void vote_model::ask(core::quorum_ask how, core::duration patience, call acquire,
                     const std::vector<stores::redlock::vote_inbox::call>& calls) {
  acquire_ = std::move(acquire);
  std::uint64_t highest = 0;
  for (const auto& one : calls)
    highest = std::max(highest, one.token);
  for (const auto& one : calls)
    machine_.on_call(one.node, without_.same_token ? highest : one.token);
  tell([&](auto& machine) { return machine.ask(std::move(how)); });
  if (!machine_.asked_all()) lose_patience_after(patience);
}

void vote_model::perform(const core::quorum_machine::steps& steps) {
  using verb = core::quorum_step::verb;
  for (const auto& one : steps) {
    auto& here = places_[one.node];
    switch (one.what) {
      case verb::acquire:
        // Another one failed at once, and that was decisive: this would come after its release.
        here.asked_with = acquire_;
        if (!machine_.over()) send_acquire(one.node);
        break;
      case verb::raise:
        if (without_.write_back || (without_.own_raise && here.raised)) {
          take(one.node, {.what = kind::raised, .counter = one.token, .asked = one.token});
        } else {
          send(one.node, client_.raise_call(who_.lock, who_.id, one.token), one.token);
        }
        break;
      case verb::release:
        if (!without_.late_release) release(one.node, {}, {});
        break;
    }
  }
}

void vote_model::release(std::size_t node, std::string_view leaves_as, std::string_view stays_as) {
  client_.give_back(node,
                    client_.release_call(who_.lock, who_.id, leaves_as, stays_as,
                                         who_.line ? who_.line->ticket : std::string{}),
                    core::after(in().now(), ttl_));
}

bool vote_model::retire(core::time_point now) {
  if (!machine_.is_too_old(now)) return false;
  to_give_back_ = machine_.retire();
  return true;
}

void vote_model::give_back(std::string_view stays_as) {
  const auto entry = who_.line ? who_.line->entry(who_.id) : std::string{};
  for (const auto& one : std::exchange(to_give_back_, {})) {
    if (without_.silent_release && !places_[one.node].answered) continue;
    if (without_.line_release && !machine_.may_hold(one.node)) continue;
    release(one.node, entry, stays_as);
  }
}

void vote_model::send_acquire(std::size_t node) {
  all()[node]->habit.on_asked(in().now());
  client_.acquire_sent(who_.id);
  send(node, places_[node].asked_with, to_acquire);
}

bool vote_model::resends(std::size_t node) {
  auto& here = places_[node];
  return resends_ && here.asked_with && !machine_.decided() && !std::exchange(here.resent, true);
}

void vote_model::on_give_up() {
  tell([this](auto& machine) { return machine.on_give_up(in().now()); });
}

void vote_model::on_delay() {
  tell([](auto& machine) { return machine.on_delay(); });
}

void vote_model::on_silence(std::size_t node) {
  tell([&](auto& machine) { return machine.on_silence(node, in().now()); });
  if (!places_[node].answered && resends(node)) send_acquire(node);
}

void vote_model::on_answer(std::size_t node, std::uint64_t tag, result<reply> answer) {
  auto& here = places_[node];
  const bool lost = !answer && answer.error().code == errc::outcome_unknown;
  if (tag == to_acquire) client_.acquire_answered(who_.id);
  if (lost && tag == to_acquire) {
    client_.acquire_may_linger(who_.id);
    if (resends(node)) return send_acquire(node);
  }
  if (answer) {
    here.answered = true;
    if (asks_for_admission(*answer)) client_.look_after_nodes();
  }
  core::vote v;
  if (!answer) {
    v = {.what = kind::failed, .why = std::move(answer.error())};
  } else if (tag == to_acquire) {
    v = read_acquire(*answer);
    if (without_.stale_calls && v.what == kind::busy) v.counter = 0;
    all()[node]->habit.on_answer(v.what == kind::refused);
    if (!machine_.decided()) all()[node]->habit.on_vote(since_sent(node));
  } else {
    v = read_raise(*answer, tag);
  }
  here.raised = here.raised || v.what == kind::raised;
  take(node, std::move(v));
}

void vote_model::take(std::size_t node, core::vote v) {
  const bool grants = v.what == kind::fresh || v.what == kind::stale;
  const bool in_line = who_.line && v.what == kind::busy;
  if (in_line) who_.line->joined = true;
  const bool over = machine_.over();
  const bool followed =
      tell([&](auto& machine) { return machine.on_vote(node, std::move(v), in().now()); });
  // Put in line here after it had been served elsewhere: leaves with its lease, or now.
  if (in_line && (over || !who_.line->waits)) {
    const auto entry = who_.line->entry(who_.id);
    if (!client_.leaves_line(who_.lock, who_.id, entry)) release(node, entry, {});
  }
  // Granted here after it was given back.
  if (grants && !followed && !client_.holds(who_.lock, who_.id) && !without_.late_release) {
    release(node, {}, {});
  }
}

}  // namespace holdfast::sim
