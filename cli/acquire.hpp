// Waiting for a lock as a person expects it: Ctrl-C ends the wait and leaves nothing behind, and on
// a terminal one sees whom one waits for.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include <holdfast/client.hpp>
#include <holdfast/lease.hpp>

#include "common_options.hpp"
#include "lock_set.hpp"
#include "signals.hpp"

namespace holdfast::cli {

struct acquisition {
  std::vector<lease> leases{};  ///< as the locks; empty: they were not acquired
  int interrupted_by = 0;       ///< the signal that ended the wait; nothing is held then
};

// All of the locks, or none. Waits up to options.wait (zero: asks once). Reads `signals` meanwhile.
// Says on stderr what it waits for, unless it is to be quiet. Throws holdfast::error.
[[nodiscard]] acquisition acquire(lock_set& locks, const acquire_options& options,
                                  signal_queue& signals);

// The client for a verb that waits for a lock: it waits through outages of the store for as long as
// the options say.
[[nodiscard]] client_options settings_for(const acquire_options& options);

// Whether this process runs under one of those very locks, taken by a `holdfast run` further up. If
// so, says so on stderr: waiting for it would never end. Asks the store only if a name is the same.
[[nodiscard]] bool waits_for_itself(lock_set& locks);

// Says on stderr which lock is busy and, if the store can tell, who holds it.
void say_busy(lock_set& locks);

}  // namespace holdfast::cli
