#include "runtime/sleep.hpp"

#include <algorithm>
#include <condition_variable>
#include <mutex>

#include "runtime/clock.hpp"

namespace holdfast::runtime {

void sleep_until(core::time_point when, const std::stop_token& stop) {
  std::mutex m;
  std::condition_variable_any woken;
  std::unique_lock lock{m};
  for (auto current = now(); current < when && !stop.stop_requested(); current = now()) {
    // An hour at most at a time: the wait below is on a clock that stands still during suspend.
    const auto left = std::min<core::duration>(when - current, std::chrono::hours{1});
    woken.wait_for(lock, stop, left, [] { return false; });
  }
}

}  // namespace holdfast::runtime
