// Where a waiter stands on the nodes.
#pragma once

#include <array>
#include <atomic>
#include <cstdio>
#include <string>

#include "core/types.hpp"
#include "stores/redlock/node_set.hpp"

namespace holdfast::stores::redlock {

// Where a waiter is to be called, and for how long it may have the lock unheard: as it stands in a
// standing ask, which scripts/release.lua reads by the positions of its fields.
[[nodiscard]] inline std::string call_to(std::string_view inbox, core::duration claim) {
  std::array<char, 16> digits{};
  const auto ms = std::chrono::ceil<std::chrono::milliseconds>(claim).count();
  std::snprintf(digits.data(), digits.size(), "%08lld", static_cast<long long>(ms));
  return std::string{inbox} + digits.data();
}

// The same for all attempts of one acquisition.
struct place_in_line {
  std::string ticket;  // when it came, µs by its own wall clock
  std::string call;    // as call_to()
  std::string holder;  // as redis::describe_holder()
  // Until it is granted or gives up. Late answers of earlier attempts must not put it back in line.
  std::atomic<bool> waits{true};
  std::atomic<node_mask> at{0};  // nodes that may have put it in line
  // One of them has: others may have granted at once all the same.
  std::atomic<bool> joined{false};

  // The standing ask of one of them, as the nodes keep it.
  [[nodiscard]] std::string entry(const core::owner_id& attempt) const {
    return std::string{attempt.text()} + call + holder;
  }
};

}  // namespace holdfast::stores::redlock
