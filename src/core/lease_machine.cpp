#include "core/lease_machine.hpp"

#include <algorithm>

namespace holdfast::core {

namespace {

// Pause between renewals that fail: short against the two thirds of the TTL that are left.
duration retry_pause(duration ttl) noexcept {
  return std::clamp<duration>(ttl / 20, std::chrono::milliseconds{5},
                              std::chrono::milliseconds{250});
}

}  // namespace

duration renewal_slack(duration ttl) noexcept { return std::min(ttl / 20, renewal_slack_max); }

std::size_t worth_taking(std::size_t due, std::size_t nearly_due, std::size_t batch_max) noexcept {
  if (nearly_due < batch_max) return nearly_due;
  return std::max(due, nearly_due - nearly_due % batch_max);
}

duration renewal_patience(time_point earliest_deadline, time_point now,
                          duration operation_timeout) noexcept {
  constexpr duration least = std::chrono::milliseconds{5};
  return std::max(least, std::min(operation_timeout, (earliest_deadline - now) / 3));
}

lease_machine::lease_machine(const lease_rule& rule, const grant& granted,
                             time_point held_from) noexcept
    : rule_{rule},
      granted_ttl_{granted.ttl},
      counted_from_{granted.counted_from},
      valid_until_{rule.validity.deadline(granted.counted_from, granted.ttl)},
      hold_ends_{rule.max_hold > duration::zero() ? after(held_from, rule.max_hold) : never},
      renew_at_{granted.counted_from + granted.ttl / 3},
      last_progress_{held_from} {
  if (granted.ttl < rule.ttl) renew_by(held_from + claim_renewal_pause);
}

time_point lease_machine::deadline() const noexcept { return std::min(valid_until_, hold_ends_); }

loss lease_machine::lose(loss why) noexcept {
  if (state_ != state::held) return loss::none;
  state_ = state::lost;
  why_ = why;
  return why;
}

loss lease_machine::tick(time_point now) noexcept {
  if (state_ != state::held || now < deadline()) return loss::none;
  if (now >= hold_ends_) return lose(loss::max_hold);
  return lose(is_stalled(now) ? loss::no_progress : loss::expired);
}

// What is valid to the end of the hold need not be renewed any more.
bool lease_machine::wants_renewal() const noexcept {
  return state_ == state::held && rule_.renew && !renewing_ && valid_until_ < hold_ends_;
}

bool lease_machine::is_stalled(time_point now) const noexcept {
  return rule_.progress_within > duration::zero() && now - last_progress_ > rule_.progress_within;
}

time_point lease_machine::next_event() const noexcept {
  if (state_ != state::held) return never;
  return wants_renewal() ? std::min(deadline(), renew_at_) : deadline();
}

bool lease_machine::take_renewal(time_point due_by, time_point now) noexcept {
  if (!wants_renewal() || due_by < renew_at_) return false;
  if (is_stalled(now)) {
    // Look again soon, in case progress() is called after all.
    renew_at_ = now + retry_pause(rule_.ttl);
    return false;
  }
  renewing_ = true;
  return true;
}

loss lease_machine::renewed(duration ttl, time_point counted_from, time_point now) noexcept {
  renewing_ = false;
  // An answer that comes after the deadline comes too late: the holder may have been told.
  if (const auto why = tick(now); why != loss::none) return why;
  if (state_ != state::held || counted_from <= counted_from_) return loss::none;
  counted_from_ = counted_from;
  granted_ttl_ = ttl;
  valid_until_ = rule_.validity.deadline(counted_from, ttl);
  renew_at_ = counted_from + ttl / 3;
  return tick(now);
}

loss lease_machine::refused(loss why) noexcept {
  renewing_ = false;
  return lose(why);
}

loss lease_machine::renewal_failed(time_point now) noexcept {
  renewing_ = false;
  renew_at_ = now + retry_pause(rule_.ttl);
  return tick(now);
}

void lease_machine::renew_by(time_point when) noexcept { renew_at_ = std::min(renew_at_, when); }

bool lease_machine::end() noexcept {
  if (state_ != state::held) return false;
  state_ = state::ended;
  return true;
}

}  // namespace holdfast::core
