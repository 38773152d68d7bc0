// Waiting for a lock as a person expects it: Ctrl-C ends the wait and leaves nothing behind, and on
// a terminal one sees whom one waits for.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include <holdfast/client.hpp>
#include <holdfast/lease.hpp>

#include "signals.hpp"

namespace holdfast::cli {

struct acquisition {
  std::optional<holdfast::lease> lease{};
  int interrupted_by = 0;  ///< the signal that ended the wait; nothing is held then
};

// Waits up to `wait` (zero: asks once). Reads `signals` meanwhile. Throws holdfast::error.
[[nodiscard]] acquisition acquire(client& client, mutex& lock, std::chrono::nanoseconds wait,
                                  signal_queue& signals);

// Says on stderr that the lock is busy and, if the store can tell, who holds it.
void say_busy(client& client, const std::string& name);

}  // namespace holdfast::cli
