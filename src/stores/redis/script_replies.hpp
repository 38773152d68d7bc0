// What the scripts say, by the numbers that they say it with.
#pragma once

namespace holdfast::stores::redis {

// The first element of what acquire.lua gives.
enum class acquire_reply : long long { busy = 0, granted = 1, queued = 2, call_again = 3 };

// What release.lua gives. Unfinished: the next holder was not found in one go.
enum class release_reply : long long {
  gone_unfinished = -2,
  taken = -1,
  gone = 0,
  released = 1,
  released_unfinished = 2,
  handed_over = 3,
};
[[nodiscard]] constexpr bool is_unfinished(release_reply said) noexcept {
  return said == release_reply::released_unfinished || said == release_reply::gone_unfinished;
}

// The first element of what break.lua and recall.lua give.
enum class break_reply : long long { held_otherwise = -1, not_held = 0, broken = 1 };

// What share_resize.lua gives.
enum class resize_reply : long long { done = 1, unfinished = 2 };

// For each lease that renew.lua, or share_downgrade.lua, did not extend.
enum class renew_reply : long long { recalled = -2, taken = -1, gone = 0 };

// Calls it takes to pass over a full queue of dead entries, five hundred at a time, and some.
inline constexpr int hand_over_calls_max = 25;

}  // namespace holdfast::stores::redis
