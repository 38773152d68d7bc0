// Options, checked once and turned into the rules that the machines follow.
#pragma once

#include <cstdint>
#include <string_view>

#include <holdfast/options.hpp>
#include <holdfast/result.hpp>

#include "core/types.hpp"

namespace holdfast::core {

inline constexpr std::size_t name_bytes_max = 512;
inline constexpr std::size_t label_bytes_max = 256;
// Below this, a renewal every third of the TTL would be at the mercy of the scheduler.
inline constexpr duration ttl_min = std::chrono::milliseconds{20};
inline constexpr duration ttl_max = std::chrono::hours{24};
inline constexpr unsigned drift_per_mille_max = 100;

// How long a grant may be relied on: `ttl` less what clocks may drift apart and the margin.
struct validity_rule {
  unsigned drift_per_mille = 10;
  duration margin{};

  // `counted_from` is when the request that earned the TTL left, not when its answer came.
  [[nodiscard]] time_point deadline(time_point counted_from, duration ttl) const noexcept {
    return counted_from + ttl - ttl * drift_per_mille / 1000 - margin;
  }
};

struct lease_rule {
  duration ttl{};
  validity_rule validity;
  bool renew = true;
  duration max_hold{};         // zero: none
  duration progress_within{};  // zero: none

  // How long a waiter has to take up a grant that is sent to it. Short, because a waiter that is
  // paused holds up the others for so long; but after a quarter of it (the waiter's last sign of
  // life) and the margin there must be time left to renew.
  [[nodiscard]] duration claim_ttl() const noexcept;
};

[[nodiscard]] result<lease_rule> make_lease_rule(const lock_options& options,
                                                 unsigned drift_per_mille);
[[nodiscard]] result<void> check(const client_options& options);
// As a duration: never's distance for as_long_as_waiting, which nanoseconds cannot hold.
[[nodiscard]] duration unreachable_limit(const client_options& options) noexcept;
[[nodiscard]] result<void> check_name(std::string_view name);
// How many permits there are, or are asked for.
[[nodiscard]] result<void> check_units(std::uint32_t permits);

}  // namespace holdfast::core
