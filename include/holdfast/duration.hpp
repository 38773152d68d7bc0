// Settings and waits take any duration: 500ms, 1.5s, 250us, std::chrono::duration<float>.
#pragma once

#include <chrono>
#include <concepts>

namespace holdfast {

// A duration in whole units that any other turns into: rounded up, for a wait is "at least". What
// is too long for it becomes its maximum, and less than its minimum becomes that. A value type.
template <class Unit>
struct any_duration : Unit {
  constexpr any_duration() noexcept : Unit{Unit::zero()} {}
  constexpr explicit any_duration(std::integral auto count) noexcept
      : Unit{static_cast<typename Unit::rep>(count)} {}

  template <class Rep, class Period>
  constexpr any_duration(const std::chrono::duration<Rep, Period>& other) noexcept
      : Unit{converted(other)} {}

 private:
  template <class Rep, class Period>
  static constexpr Unit converted(const std::chrono::duration<Rep, Period>& other) noexcept {
    using counted = std::chrono::duration<long double, typename Unit::period>;
    constexpr auto most = static_cast<long double>(Unit::max().count());
    const auto count = std::chrono::duration_cast<counted>(other).count();
    if (count >= most) return Unit::max();
    if (count <= -most) return Unit::min();
    if (!(count < most)) return Unit::zero();  // not a number
    return std::chrono::ceil<Unit>(other);
  }
};

using any_milliseconds = any_duration<std::chrono::milliseconds>;
using any_nanoseconds = any_duration<std::chrono::nanoseconds>;

}  // namespace holdfast
