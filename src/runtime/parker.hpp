// A place where a thread sleeps until another wakes it, one for each thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "core/types.hpp"

namespace holdfast::runtime {

// A condition variable has to be notified under the waiting thread's mutex: without it, the
// variable may be destroyed by then. The woken thread then runs into that mutex and sleeps again.
// A parker outlives its thread's wait, so the thread is woken after everything is unlocked. Where
// many threads wait for short turns, that is most of the cost.
//
// A wake-up may be left from an earlier wait: the thread has to look at what it waits for.
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
