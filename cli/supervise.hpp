// The wrapper's part while the command runs: keep the guardian told, pass signals on, notice loss.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include <holdfast/lease.hpp>

#include "guard_link.hpp"
#include "signals.hpp"
#include "terminal.hpp"

namespace holdfast::cli {

// From a lease's TTL to the moments of its end. The command is told to stop when the lease's
// deadline passes, `margin` before the store could let go, and killed half a margin later.
struct hold_timing {
  explicit hold_timing(std::chrono::milliseconds ttl_of_lease) noexcept;
  std::chrono::milliseconds ttl;
  std::chrono::milliseconds margin;  // a third of the TTL, five seconds at most
  std::int64_t grace_ns;             // from TERM to KILL
  std::int64_t own_kill_after_ns;    // how long after the guardian's KILL the wrapper sends its own
  int tick_ms;                       // how often to look for a renewal
};

struct command_end {
  int status = 0;              ///< exit status of the command, 128+n for a signal
  int signal = 0;              ///< the signal that ended it, zero if none did
  bool had_terminal = false;   ///< Ctrl-C reached the command, and not this process
  bool was_told = false;       ///< that signal came to this process, and was passed on
  bool told_to_end = false;    ///< a signal that ends a wait was passed on
  bool lost = false;           ///< a lease was lost, or its time was up for the guardian
  bool guardian_died = false;  ///< the command was killed for want of a guardian
  bool survived = false;       ///< somebody of the group could not be killed
};

// Starts the command and returns when it has ended; if a lease was lost, when its whole group
// has. Needs SIGTTOU ignored.
[[nodiscard]] command_end supervise(const std::vector<lease>& held, const hold_timing& timing,
                                    guard_link& guard, signal_queue& signals, terminal& tty);

}  // namespace holdfast::cli
