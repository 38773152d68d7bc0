#include "core/cohort.hpp"

namespace holdfast::core {

std::uint64_t tokens_wanted(std::size_t waiting_here) noexcept {
  return waiting_here > 0 ? cohort_hands_max : 1;
}

bool worth_passing(const lease_rule& to, duration granted_ttl, time_point counted_from,
                   time_point now) noexcept {
  if (!to.renew) return counted_from + granted_ttl >= now + to.ttl;
  return to.validity.deadline(counted_from, granted_ttl) - now > granted_ttl / 4;
}

grant as_passed(const lease_rule& to, grant held, time_point now) noexcept {
  if (held.counted_from + held.ttl > now + to.ttl) {
    held.ttl = to.ttl;
    held.counted_from = now;
  }
  return held;
}

bool cohort_turn::may_pass(time_point valid_until, duration ttl, time_point now) const noexcept {
  return next_ < end_ && now - since_ < cohort_time_max && valid_until - now > ttl / 4;
}

}  // namespace holdfast::core
