#include "runtime/parker.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "runtime/clock.hpp"

namespace holdfast::runtime {

const std::shared_ptr<parker>& parker::of_this_thread() {
  static thread_local const auto mine = std::make_shared<parker>();
  return mine;
}

void parker::park(core::time_point until) noexcept {
  std::uint32_t seen = empty;
  if (state_.compare_exchange_strong(seen, parked)) {
    // The time that is left, not a point in time: futexes know no CLOCK_BOOTTIME.
    const timespec left = runtime::until(until);
    ::syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&state_), FUTEX_WAIT_PRIVATE, parked,
              &left, nullptr, 0);
  }
  state_.exchange(empty);
}

void parker::unpark() noexcept {
  if (state_.exchange(woken) != parked) return;
  ::syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&state_), FUTEX_WAKE_PRIVATE, 1, nullptr,
            nullptr, 0);
}

}  // namespace holdfast::runtime
