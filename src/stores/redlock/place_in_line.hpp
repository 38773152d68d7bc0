// Where a waiter stands on the nodes.
#pragma once

#include <atomic>
#include <string>

#include "core/types.hpp"
#include "stores/redis/script_values.hpp"

namespace holdfast::stores::redlock {

// Where a waiter is to be called, and for how long it may have the lock unheard: as it stands in a
// standing ask, which scripts/release.lua reads by the positions of its fields.
[[nodiscard]] inline std::string call_to(std::string_view inbox, core::duration claim) {
  constexpr std::size_t claim_digits = 8;
  const auto ms = std::chrono::ceil<std::chrono::milliseconds>(claim).count();
  return std::string{inbox} + redis::digits(static_cast<std::uint64_t>(ms), claim_digits);
}

// The same for all attempts of one acquisition.
struct place_in_line {
  std::string ticket;  // when it came, µs by its own wall clock
  std::string call;    // as call_to()
  std::string holder;  // as redis::describe_holder()
  // Until it is granted or gives up. Late answers of earlier attempts must not put it back in line.
  std::atomic<bool> waits{true};
  // One of them has: others may have granted at once all the same.
  std::atomic<bool> joined{false};

  // The standing ask of one of them, as the nodes keep it.
  [[nodiscard]] std::string entry(const core::owner_id& attempt) const {
    return std::string{attempt.text()} + call + holder;
  }
};

}  // namespace holdfast::stores::redlock
