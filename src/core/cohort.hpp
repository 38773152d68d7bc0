// Decides whether a lock that is given back goes to the next thread here or back to the store.
#pragma once

#include <cstdint>

#include "core/settings.hpp"
#include "core/types.hpp"

namespace holdfast::core {

// Other processes wait while a lock goes from thread to thread here: for so many hands, or so long.
inline constexpr std::uint64_t cohort_hands_max = 64;
inline constexpr duration cohort_time_max = std::chrono::milliseconds{10};
// For so long at the beginning of a turn, threads that come right back go before those asleep.
inline constexpr duration cohort_return_max = std::chrono::microseconds{200};
// How long the first in the queue polls for its turn before it sleeps, while that pays.
inline constexpr duration hand_over_poll = std::chrono::microseconds{60};

// How many tokens to reserve: all that one turn can use if others wait here, for those who have
// had the lock come back and queue again; one if nobody does. More would take the counter ahead of
// the clock that backs it up, in µs; so many it has caught up with before the next grant.
[[nodiscard]] std::uint64_t tokens_wanted(std::size_t waiting_here) noexcept;

// Whether what is left of a grant is worth having by the terms of the one who would get it next: a
// lease that nothing renews needs its whole TTL, another one a quarter of what was granted.
[[nodiscard]] bool worth_passing(const lease_rule& to, duration granted_ttl,
                                 time_point counted_from, time_point now) noexcept;

// What the next one gets of what is held: what is left of it, and no more than its own TTL, which
// is what it asked for. The store keeps the lock for as long as it did.
[[nodiscard]] grant as_passed(const lease_rule& to, grant held, time_point now) noexcept;

// A grant of the store as it goes from hand to hand. A value type.
class cohort_turn {
 public:
  cohort_turn() noexcept = default;
  cohort_turn(const grant& granted, time_point now) noexcept
      : next_{granted.token.value() + 1},
        end_{granted.token.value() + granted.block},
        since_{now} {}

  // Whether it may go on to another hand: a token is left, its time is not up, and what is left of
  // its validity (`valid_until`, of a lease with this TTL) is worth having.
  [[nodiscard]] bool may_pass(time_point valid_until, duration ttl, time_point now) const noexcept;
  // The next hand's token. Only if it may pass.
  [[nodiscard]] fencing_token pass() noexcept { return fencing_token{next_++}; }

 private:
  std::uint64_t next_ = 0;
  std::uint64_t end_ = 0;
  time_point since_{};
};

}  // namespace holdfast::core
