// What the wrapper and its guardian say to each other, over a socket pair that keeps messages
// apart. Both are the same program after a fork, so plain structs are enough.
#pragma once

#include <array>
#include <cstdint>

#include "lock_set.hpp"

namespace holdfast::cli {

// A lock that the command runs under.
struct guarded_hold {
  std::uint64_t token = 0;       ///< zero: it has none
  std::uint64_t told_token = 0;  ///< for HOLDFAST_TOKEN: the same, or one that others count
  std::array<char, 32> owner{};  ///< with which it can be given back
};

// Wrapper to guardian. Its end of the socket closing means: the wrapper is gone.
struct guard_order {
  enum class kind : std::int32_t {
    start,      ///< start the command; all fields count
    deadline,   ///< the lease was renewed: the two times
    lost,       ///< terminate now, kill at kill_at_ns
    dismissed,  ///< the wrapper goes on by itself, and gives the lock back
  };
  kind what{};
  bool foreground = false;      ///< give the command the terminal
  std::int64_t term_at_ns = 0;  ///< CLOCK_BOOTTIME
  std::int64_t kill_at_ns = 0;
  std::array<guarded_hold, locks_at_once_max> holds{};  ///< as many as the locks are named
};

// Guardian to wrapper.
struct guard_report {
  enum class kind : std::int32_t {
    forked,       ///< value: the command's process id, which is its group's too
    stopped,      ///< value: the signal
    terminating,  ///< the deadline came, or a loss was told: TERM was sent
    exited,       ///< value: its exit status, 128+n for a signal
    gone,         ///< terminating is over: nobody of the group is left, or it never started
  };
  kind what{};
  std::int32_t value = 0;
  std::int32_t signal = 0;  ///< with `exited`: the signal that ended it, zero if none did
};

}  // namespace holdfast::cli
