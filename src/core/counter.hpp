// Numbers that are counted and waited for: a latch, and Redisson's semaphore. No lease is on them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <holdfast/result.hpp>

#include "core/types.hpp"

namespace holdfast::core {

struct counter_kind {
  enum class form : std::uint8_t {
    latch,
    redisson_latch,      // in the layout of Redisson's RCountDownLatch
    redisson_semaphore,  // in that of its RSemaphore
  };
  form what = form::latch;
  // Of form::latch: how many have to count, and how long it is remembered when it is not in use.
  std::uint32_t count = 0;
  duration keep{};
};

// One thing that is asked of a counter.
struct counter_request {
  enum class verb : std::uint8_t {
    look,       // done: it is zero
    watch,      // the same, by one that waits for that
    subtract,   // a latch counts down
    take,       // done: there were so many, and they are taken
    add,        // so many more
    set,        // done: it had no value, and has this one now
    drain,      // takes all there are
    start_anew  // as if nobody had counted yet
  };
  verb what = verb::look;
  std::int64_t amount = 1;
  // Of a latch: whose part is counted. Empty: nobody's, so that each request counts.
  std::string part{};
};

struct counter_answer {
  bool done = false;
  std::int64_t value = 0;  // afterwards; of verb::drain, what was taken
  // When it is not done, and others are told of changes: asking again after so long is a safety net
  // for lost messages. Empty: nobody will tell, so poll.
  std::optional<duration> ask_within{};
  // The run of the latch that was waited for is gone, and whether it had opened is not known.
  bool run_is_gone = false;
};

[[nodiscard]] constexpr bool only_looks(counter_request::verb what) noexcept {
  return what == counter_request::verb::look || what == counter_request::verb::watch;
}

// Whether it can be asked again when its answer was lost. Ours name what they count; Redisson's
// layout has no room for that.
[[nodiscard]] constexpr bool may_repeat(const counter_kind& kind,
                                        const counter_request& what) noexcept {
  return only_looks(what.what) || kind.what == counter_kind::form::latch;
}

// How soon one that waits, and is told of changes, asks again: by that it keeps a latch, too.
[[nodiscard]] constexpr duration ask_within(const counter_kind& kind, duration most) noexcept {
  return kind.what == counter_kind::form::latch && kind.keep / 3 < most ? kind.keep / 3 : most;
}

inline constexpr std::size_t part_bytes_max = 256;
// The least and the most of latch_options::keep.
inline constexpr duration latch_keep_min = std::chrono::seconds{1};
inline constexpr duration latch_keep_max = std::chrono::hours{24 * 31};
// Java reads such a number as an int.
inline constexpr std::int64_t redisson_count_max = 2'147'483'647;

// What a latch that is in use says to those who think that it is another one; numbers as text.
[[nodiscard]] failure other_count(std::string_view count, std::string_view named);
[[nodiscard]] failure counts_too_much(std::string_view left, std::string_view count);
[[nodiscard]] failure run_is_gone();

[[nodiscard]] result<void> check_latch(std::uint32_t count, duration keep);
[[nodiscard]] result<void> check_part(std::string_view part);
[[nodiscard]] result<void> check_redisson_count(std::int64_t amount);

}  // namespace holdfast::core
