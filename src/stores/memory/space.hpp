// What the memory stores of one name share.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>

#include <holdfast/result.hpp>
#include <holdfast/token.hpp>

#include "core/types.hpp"
#include "runtime/clock.hpp"
#include "stores/memory/latch_entry.hpp"
#include "stores/memory/lock_entry.hpp"

namespace holdfast::stores::memory {

// Entries stay: a test makes few.
struct space {
  std::mutex m;
  // Protected by m.
  std::map<std::string, lock_entry, std::less<>> locks;
  std::map<std::string, latch_entry, std::less<>> latches;
  std::uint64_t last_token = 0;

  fencing_token next_token() {
    const auto wall = std::chrono::duration_cast<std::chrono::microseconds>(
        runtime::wall_now().time_since_epoch());
    last_token = std::max(last_token + 1, static_cast<std::uint64_t>(wall.count()));
    return fencing_token{last_token};
  }

  // Null if nobody counts there. A name stands for a lock or a latch.
  [[nodiscard]] latch_entry* latch_called(const std::string& name, core::time_point now) {
    const auto found = latches.find(name);
    if (found == latches.end()) return nullptr;
    found->second.expire(now);
    return found->second.in_use() ? &found->second : nullptr;
  }
};

}  // namespace holdfast::stores::memory
