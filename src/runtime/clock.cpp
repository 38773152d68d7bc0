#include "runtime/clock.hpp"

#include <algorithm>

namespace holdfast::runtime {

core::time_point now() noexcept {
  timespec t{};
  ::clock_gettime(CLOCK_BOOTTIME, &t);
  return core::time_point{std::chrono::seconds{t.tv_sec} + core::duration{t.tv_nsec}};
}

std::chrono::system_clock::time_point wall_now() noexcept {
  return std::chrono::system_clock::now();
}

std::chrono::milliseconds wall_ms() noexcept {
  return std::chrono::floor<std::chrono::milliseconds>(wall_now().time_since_epoch());
}

timespec until(core::time_point when) noexcept {
  // A wait of a day is as good as endless: the caller looks at the time again.
  constexpr core::duration longest = std::chrono::hours{24};
  const auto current = now();
  const auto left = when <= current            ? core::duration::zero()
                    : when - current > longest ? longest
                                               : when - current;
  timespec t{};
  t.tv_sec = left.count() / 1'000'000'000;
  t.tv_nsec = left.count() % 1'000'000'000;
  return t;
}

}  // namespace holdfast::runtime
