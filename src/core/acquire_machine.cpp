#include "core/acquire_machine.hpp"

#include <algorithm>
#include <utility>

#include "core/passing.hpp"

namespace holdfast::core {

namespace {

using std::chrono::milliseconds;

// Polling a lock that another client's holder will not tell us about: soon at first, because most
// locks are short, then at a rate that a server does not notice.
constexpr backoff::bounds poll_pause{milliseconds{2}, milliseconds{100}};
// Asking again after a failure: at once would hammer a server that is just coming back.
constexpr backoff::bounds retry_pause{milliseconds{2}, milliseconds{250}};
// What a short wait tolerates beyond its end: enough for a connection that was cut, or a server
// that is there again at once, and little enough for a caller that wants to know now.
constexpr duration outage_slack = milliseconds{100};
// The store's expiry is coarse; asking exactly then would often be a moment too early.
constexpr duration after_expiry = milliseconds{1};

// Waiters of one client say "still here" at the same moments, at most half a pause early, so that
// what they say travels in one batch.
time_point together(time_point due, duration pause) noexcept {
  const auto step = std::max(duration{1}, pause / 2);
  return due - due.time_since_epoch() % step;
}

}  // namespace

acquire_machine::acquire_machine(const acquire_rule& rule, std::uint64_t seed) noexcept
    : rule_{rule}, poll_{poll_pause, seed}, retry_{retry_pause, ~seed} {}

time_point acquire_machine::give_up_at() const noexcept {
  const auto wait_ends = after(rule_.wait_until, outage_slack);
  return std::min(after(*failing_since_, rule_.unreachable_limit), wait_ends);
}

acquire_step acquire_machine::ask(time_point now) noexcept {
  asked_at_ = now;
  // A whole timeout, also for the last ask at the end of the wait: one that were cut short would
  // turn "busy" into "unknown". Of a store that has failed before, less is expected.
  const auto whole = after(now, rule_.operation_timeout);
  if (!failing_since_) return {acquire_step::verb::ask, whole};
  const auto least = after(now, std::min(rule_.operation_timeout, outage_slack));
  return {acquire_step::verb::ask, std::min(whole, std::max(least, give_up_at()))};
}

acquire_step acquire_machine::finish(acquire_outcome how, time_point now) noexcept {
  outcome_ = how;
  const bool leaves_something = how != acquire_outcome::granted && (may_hold_ || queued_);
  if (!leaves_something) return {acquire_step::verb::done};
  return {acquire_step::verb::withdraw, after(now, rule_.release_budget)};
}

acquire_step acquire_machine::start(time_point now) noexcept { return ask(now); }

acquire_step acquire_machine::on_answer(const answer& what, time_point now) {
  failing_since_.reset();
  if (const auto* later = std::get_if<not_yet>(&what)) {
    why_ = later->why;
    if (now >= rule_.wait_until) return finish(acquire_outcome::failed, now);
    return {acquire_step::verb::pause, std::min(after(now, retry_.next()), rule_.wait_until)};
  }
  retry_.reset();
  if (const auto* got = std::get_if<grant>(&what)) {
    grant_ = *got;
    if (rule_.validity.deadline(got->counted_from, got->ttl) > now) {
      return finish(acquire_outcome::granted, now);
    }
    may_hold_ = true;
    return finish(acquire_outcome::late, now);
  }
  met_ = std::get<busy>(what);
  queued_ = queued_ || met_->queued;
  if (now >= rule_.wait_until) return finish(acquire_outcome::busy, now);
  if (met_->ask_within) poll_.reset();
  const auto pause = met_->ask_within ? *met_->ask_within : poll_.next();
  auto due = after(now, pause);
  // Never at once, whatever the store says is left.
  if (met_->remaining && *met_->remaining < pause) {
    due = after(now, std::max(duration::zero(), *met_->remaining) + after_expiry);
  } else if (met_->ask_within) {
    due = together(due, pause);
  }
  return {acquire_step::verb::wait, std::min(due, rule_.wait_until)};
}

acquire_step acquire_machine::on_failure(failure why, time_point now) {
  const auto code = why.code;
  why_ = std::move(why);
  if (code == errc::outcome_unknown) may_hold_ = true;
  if (!is_passing(code)) return finish(acquire_outcome::failed, now);
  // Since when it was asked: a server that is silent was so all the time.
  if (!failing_since_) failing_since_ = asked_at_;
  const auto again = after(now, retry_.next());
  if (again >= give_up_at()) return finish(acquire_outcome::failed, now);
  return {acquire_step::verb::pause, again};
}

acquire_step acquire_machine::on_woken(bool stop, time_point now) noexcept {
  if (stop) return finish(acquire_outcome::stopped, now);
  // One last ask at the end of the wait: the lock may have come free with it.
  return ask(now);
}

acquire_step acquire_machine::on_withdrawn(bool sure, time_point now) {
  static_cast<void>(now);
  if (!sure && may_hold_) {
    const auto cause = why_.message;
    outcome_ = acquire_outcome::failed;
    why_.code = errc::outcome_unknown;
    why_.message =
        "it is not known whether the lock was granted; if it was, it is free after at most one "
        "TTL, and nothing renews it";
    if (!cause.empty()) why_.message += " (" + cause + ")";
  } else if (outcome_ == acquire_outcome::failed && why_.code == errc::outcome_unknown) {
    // The store has since confirmed that nothing is held.
    why_.code = errc::store_unreachable;
  }
  return {acquire_step::verb::done};
}

}  // namespace holdfast::core
