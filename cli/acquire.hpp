// Waiting for a lock as a person expects it: Ctrl-C ends the wait and leaves nothing behind, and on
// a terminal one sees whom one waits for.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include <holdfast/client.hpp>
#include <holdfast/lease.hpp>

#include "common_options.hpp"
#include "named_lock.hpp"
#include "signals.hpp"

namespace holdfast::cli {

struct acquisition {
  std::optional<holdfast::lease> lease{};
  int interrupted_by = 0;  ///< the signal that ended the wait; nothing is held then
};

// Waits up to options.wait (zero: asks once). Reads `signals` meanwhile. Says on stderr what it
// waits for, unless it is to be quiet. Throws holdfast::error.
[[nodiscard]] acquisition acquire(named_lock& lock, const acquire_options& options,
                                  signal_queue& signals);

// The client for a verb that waits for a lock: it waits through outages of the store for as long as
// the options say.
[[nodiscard]] client_options settings_for(const acquire_options& options);

// Whether this process runs under that very lock, taken by a `holdfast run` further up. If so, says
// so on stderr: waiting for it would never end. Asks the store only if the name is the same.
[[nodiscard]] bool waits_for_itself(named_lock& lock);

// Says on stderr that the lock is busy and, if the store can tell, who holds it.
void say_busy(named_lock& lock);

}  // namespace holdfast::cli
