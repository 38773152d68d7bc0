// How much room is left for clients that neither queue nor listen (foreign=share).
#pragma once

#include "core/backoff.hpp"
#include "core/types.hpp"

namespace holdfast::core {

// A client that polls gets nothing while ours hand a lock over to each other. With foreign=share
// the lock is left free after so many hand-overs in a row, or so long of them, whichever is first.
inline constexpr int share_after_hands = 64;
inline constexpr duration share_after = std::chrono::milliseconds{100};
// For so long: about a fifth of the time, so that a client that polls every 100 ms gets its turn
// after five tries, on average. Never the same, or a poller in step with us would always miss it.
inline constexpr duration room_min = std::chrono::milliseconds{10};
inline constexpr duration room_max = std::chrono::milliseconds{40};

[[nodiscard]] constexpr duration room_for_foreign(std::uint64_t random) noexcept {
  return between(room_min, room_max, random);
}

}  // namespace holdfast::core
