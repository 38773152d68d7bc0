// What a name stands for, and how much of it an attempt wants.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <holdfast/result.hpp>

#include "core/fail.hpp"

namespace holdfast::core {

// Locks of different kinds under one name are different locks to a client; a store that keeps them
// under one key refuses the second kind with errc::wrong_type.
struct lock_kind {
  enum class form : std::uint8_t {
    exclusive,         // one holder: mutex
    shared,            // any number of readers, or one writer
    permits,           // so many units
    redisson,          // as exclusive, in the layout of Redisson's RLock: no tokens
    redisson_fenced,   // as Redisson's RFencedLock: its tokens count 1, 2, 3
    redisson_permits,  // one permit of Redisson's RPermitExpirableSemaphore
    redisson_rw,       // as shared, in the layout of Redisson's RReadWriteLock: no tokens
    redisson_fair,     // as redisson, with a queue: Redisson's RFairLock
  };
  form what = form::exclusive;
  // Of form::permits: how many there are. Of form::redisson_permits: how many there are to be if
  // that was not set yet; zero: it must have been.
  std::uint32_t permits = 0;

  friend bool operator==(const lock_kind&, const lock_kind&) noexcept = default;
};

// Units of one lock: permits that a semaphore may have, readers that a shared lock lets in. To find
// the dead among them a store reads all.
inline constexpr std::uint32_t units_max = 10'000;

// How many units there are: that of a shared lock is part of what is stored.
[[nodiscard]] constexpr std::uint32_t capacity_of(const lock_kind& kind) noexcept {
  switch (kind.what) {
    case lock_kind::form::exclusive:
    case lock_kind::form::redisson:
    case lock_kind::form::redisson_fenced:
    case lock_kind::form::redisson_permits:
    case lock_kind::form::redisson_fair:
      return 1;
    case lock_kind::form::redisson_rw:
    case lock_kind::form::shared:
      return units_max;
    case lock_kind::form::permits:
      break;
  }
  return kind.permits;
}

[[nodiscard]] constexpr bool is_shared(const lock_kind& kind) noexcept {
  return kind.what == lock_kind::form::shared || kind.what == lock_kind::form::permits;
}
// In the layout of another client, which knows Redis only.
[[nodiscard]] constexpr bool is_redissons(const lock_kind& kind) noexcept {
  switch (kind.what) {
    case lock_kind::form::redisson:
    case lock_kind::form::redisson_fenced:
    case lock_kind::form::redisson_permits:
    case lock_kind::form::redisson_rw:
    case lock_kind::form::redisson_fair:
      return true;
    case lock_kind::form::exclusive:
    case lock_kind::form::shared:
    case lock_kind::form::permits:
      break;
  }
  return false;
}

// Of a lock that has parts, the attempt wants all of them: it is the only holder then.
inline constexpr std::uint32_t whole = 0;

// For a store that has mutexes only. `because`: why, and what to use instead.
[[nodiscard]] inline result<void> check_exclusive(const lock_kind& kind, std::string_view because) {
  if (kind.what == lock_kind::form::exclusive) return {};
  return fail(errc::unsupported, std::string{because});
}

}  // namespace holdfast::core
