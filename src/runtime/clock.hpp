// The only place where time is read.
#pragma once

#include <ctime>

#include "core/types.hpp"

namespace holdfast::runtime {

// CLOCK_BOOTTIME: unlike steady_clock it goes on while the host is suspended, and a lease that
// expired meanwhile must be seen as expired.
[[nodiscard]] core::time_point now() noexcept;

// Wall clock, for showing to people and for tokens of the in-process store. Never for validity.
[[nodiscard]] std::chrono::system_clock::time_point wall_now() noexcept;

// The same since 1970, as scripts take it.
[[nodiscard]] std::chrono::milliseconds wall_ms() noexcept;

// What poll(2) wants: rounded up, so that a wait never ends a moment too early and spins.
[[nodiscard]] timespec until(core::time_point when) noexcept;

}  // namespace holdfast::runtime
