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
  };
  form what = form::exclusive;
  // Of form::permits: how many there are. Of form::redisson_permits: how many there are to be if
  // that was not set yet; zero: it must have been.
  std::uint32_t permits = 0;

  friend bool operator==(const lock_kind&, const lock_kind&) noexcept = default;
};

// Of a lock that has parts, the attempt wants all of them: it is the only holder then.
inline constexpr std::uint32_t whole = 0;

// For a store that has mutexes only. `because`: why, and what to use instead.
[[nodiscard]] inline result<void> check_exclusive(const lock_kind& kind, std::string_view because) {
  if (kind.what == lock_kind::form::exclusive) return {};
  return fail(errc::unsupported, std::string{because});
}

}  // namespace holdfast::core
