// What would void the guarantees of a deployment, in order of danger.
#pragma once

#include <vector>

#include <holdfast/examination.hpp>

#include "core/deployment.hpp"

namespace holdfast::core {

// Clocks of servers: tokens are made of them, and an operator reads them.
inline constexpr duration clock_skew_noticed = std::chrono::seconds{1};
// A server that was started so recently may have lost leases that their holders still believe in.
inline constexpr duration recent_start = std::chrono::hours{1};
// Half of the round trips of one server take longer: it, or the way there, is overloaded.
inline constexpr duration slow_round_trip = std::chrono::milliseconds{250};
// Of maxmemory: beyond it the server is about to refuse new locks.
inline constexpr unsigned memory_full_percent = 90;

[[nodiscard]] std::vector<finding> diagnose(const deployment& what);

}  // namespace holdfast::core
