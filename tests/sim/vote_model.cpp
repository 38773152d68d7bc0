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
    case 3:
      return {.what = kind::busy, .remaining = left(fields[1])};
    default: {
      auto holder = stores::redis::parse_holder(fields[2].text);
      if (!holder) return {.what = kind::refused, .why = std::move(holder.error())};
      return {.what = kind::busy, .holder = std::move(*holder), .remaining = left(fields[1])};
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
      without_{without},
      resends_{resends},
      machine_{rule} {}

void vote_model::start(core::duration patience) {
  perform(machine_.start());
  if (!machine_.asked_all()) lose_patience_after(patience);
}

void vote_model::perform(const core::quorum_machine::steps& steps) {
  using verb = core::quorum_step::verb;
  for (const auto& one : steps) {
    auto& here = places_[one.node];
    switch (one.what) {
      case verb::acquire:
        send_acquire(one.node);
        break;
      case verb::raise:
        if (without_.write_back || (without_.own_raise && here.raised)) {
          take(one.node, {.what = kind::raised, .counter = one.token, .asked = one.token});
        } else {
          send(one.node, client_.raise_call(who_.lock, who_.id, one.token), one.token);
        }
        break;
      case verb::release: {
        if (without_.silent_release && !here.answered) break;
        const auto& line = who_.line;
        // Only after a split vote: one that failed may not be asked again, and nobody would leave.
        const bool stays = line && line->waits && machine_.outcome() == core::quorum_outcome::busy;
        if (stays) line->joined = true;
        client_.give_back(
            one.node,
            client_.release_call(who_.lock, who_.id, stays ? "stay" : "",
                                 line ? std::string_view{line->waiter} : std::string_view{},
                                 line ? std::string_view{line->ticket} : std::string_view{}),
            core::after(in().now(), who_.ttl));
        break;
      }
    }
  }
}

void vote_model::send_acquire(std::size_t node) {
  if (who_.line) who_.line->at |= stores::redlock::only(node);
  all()[node]->habit.on_asked(in().now());
  client_.acquire_sent(who_.id);
  send(node, who_.acquire, to_acquire);
}

bool vote_model::resends(std::size_t node) {
  return resends_ && !machine_.decided() && !std::exchange(places_[node].resent, true);
}

void vote_model::on_silence(std::size_t node) {
  perform(machine_.on_silence(node, in().now()));
  if (!places_[node].answered && resends(node)) send_acquire(node);
}

void vote_model::on_answer(std::size_t node, std::uint64_t tag, result<reply> answer) {
  auto& here = places_[node];
  const bool lost = !answer && answer.error().code == errc::outcome_unknown;
  if (tag == to_acquire) client_.acquire_answered(who_.id);
  if (lost && tag == to_acquire) {
    client_.acquire_may_linger(who_.id, who_.line.get());
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
  if (const auto& line = who_.line; line && v.what == kind::busy) {
    line->joined = true;
    // Put in line here after it had been served elsewhere: leaves with its lease, or now.
    if (!line->waits && !client_.leaves_line(who_.lock, who_.id, line->waiter)) {
      client_.give_back(node, client_.release_call(who_.lock, who_.id, "leave", line->waiter, {}),
                        core::after(in().now(), who_.ttl));
    }
  }
  const bool decided_before = machine_.decided();
  auto next = machine_.on_vote(node, std::move(v), in().now());
  // Granted here after it was given back.
  if (grants && next.empty() && !client_.holds(who_.lock, who_.id)) {
    next.push_back({core::quorum_step::verb::release, node, 0});
  }
  if (decided_before && without_.late_release) next.clear();
  perform(next);
}

}  // namespace holdfast::sim
