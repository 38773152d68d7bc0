// A place to sleep until somebody says otherwise, one for each thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "core/types.hpp"

namespace holdfast::runtime {

// Waking somebody through a condition variable means holding the mutex under which he waits, or
// else what he waits on may be gone; woken under it he runs straight into it and sleeps again. A
// parker outlives its thread's wait, so he can be woken after everything is unlocked. Where many
// threads wait for short turns, that is most of the cost.
//
// A wake-up may be one that was meant for an earlier wait: look at what you wait for.
class parker {
 public:
  [[nodiscard]] static const std::shared_ptr<parker>& of_this_thread();

  // Returns when unpark() was called since the last return, or at `until`, or for no reason.
  void park(core::time_point until) noexcept;
  // No system call if nobody is parked.
  void unpark() noexcept;

 private:
  enum : std::uint32_t { empty, woken, parked };
  std::atomic<std::uint32_t> state_{empty};
};

}  // namespace holdfast::runtime
