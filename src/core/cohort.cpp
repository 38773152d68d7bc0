#include "core/cohort.hpp"

namespace holdfast::core {

std::uint64_t tokens_wanted(std::size_t waiting_here) noexcept {
  return waiting_here > 0 ? cohort_hands_max : 1;
}

bool cohort_turn::may_pass(time_point valid_until, duration ttl, time_point now) const noexcept {
  return next_ < end_ && now - since_ < cohort_time_max && valid_until - now > ttl / 4;
}

}  // namespace holdfast::core
