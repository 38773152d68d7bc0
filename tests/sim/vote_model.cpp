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
      return {.what = kind::stale, .counter = read_number(fields[1].text)};
    default: {
      core::vote busy{
          .what = kind::busy, .counter = read_number(fields[3].text), .remaining = left(fields[1])};
      if (fields[2].text.empty()) return busy;
      auto holder = stores::redis::parse_holder(fields[2].text);
      if (!holder) return {.what = kind::refused, .why = std::move(holder.error())};
      busy.holder = std::move(*holder);
      return busy;
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
  const auto code = why == "config" ? errc::incompatible
                    : why == "ttl"  ? errc::invalid_argument
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

void vote_model::ask(std::uint64_t proposal, call acquire) {
  acquire_ = std::move(acquire);
  tell([&](auto& machine) { return machine.ask(proposal, in().now()); });
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
        if (!without_.late_release) release(one.node);
        break;
    }
  }
}

void vote_model::release(std::size_t node) {
  client_.give_back(node, client_.release_call(who_.lock, who_.id, {}, voter_calls::turn::nobodys),
                    core::after(in().now(), ttl_));
}

void vote_model::leave_queue(std::size_t node) {
  const auto entry = who_.waiter->entry();
  const bool granted = machine_.decided() && !machine_.over();
  client_.give_back(
      node,
      granted ? client_.leave_call(who_.lock, entry)
              : client_.release_call(who_.lock, who_.id, entry, voter_calls::turn::nobodys),
      core::after(in().now(), ttl_));
}

void vote_model::give_back() {
  for (const auto& one : std::exchange(to_give_back_, {})) {
    if (without_.silent_release && !places_[one.node].answered) continue;
    release(one.node);
  }
}

void vote_model::leave_queues() {
  for (std::size_t i = 0; i < all().size(); ++i) {
    if (machine_.is_out(i)) leave_queue(i);
  }
}

void vote_model::send_acquire(std::size_t node) {
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
  } else {
    v = read_raise(*answer, tag);
  }
  here.raised = here.raised || v.what == kind::raised;
  take(node, std::move(v));
}

void vote_model::take(std::size_t node, core::vote v) {
  const bool grants = v.what == kind::fresh || v.what == kind::stale;
  const bool may_be_queued =
      who_.waiter && (v.what == kind::busy || v.what == kind::refused || v.what == kind::failed);
  const bool followed =
      tell([&](auto& machine) { return machine.on_vote(node, std::move(v), in().now()); });
  // It was served elsewhere meanwhile, or gave up.
  if (may_be_queued && who_.waiter->done) leave_queue(node);
  // Granted here after it was given back.
  if (grants && !followed && !client_.holds(who_.lock, who_.id) && !without_.late_release) {
    release(node);
  }
}

}  // namespace holdfast::sim
