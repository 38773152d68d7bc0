// The words that every room shares.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include <holdfast/error.hpp>
#include <holdfast/status.hpp>
#include <holdfast/token.hpp>

#include "core/fail.hpp"

namespace holdfast::core {

using duration = std::chrono::nanoseconds;

// Time that goes on during suspend (CLOCK_BOOTTIME). Core only computes with it: the clock is read
// in runtime, by the one who calls a machine.
struct boot_clock {
  using rep = std::int64_t;
  using period = std::nano;
  using duration = core::duration;
  using time_point = std::chrono::time_point<boot_clock>;
  static constexpr bool is_steady = true;
};
using time_point = boot_clock::time_point;

inline constexpr time_point never = time_point::max();

// now + wait without overflow: `forever` stays never.
[[nodiscard]] constexpr time_point after(time_point now, duration wait) noexcept {
  if (wait <= duration::zero()) return now;
  return wait >= never - now ? never : now + wait;
}

// A fresh 128-bit id for each attempt at a lock, as 32 hexadecimal digits. Being new for every
// attempt is what makes a late release or renewal harmless to the next holder.
class owner_id {
 public:
  static constexpr std::size_t digits = 32;

  [[nodiscard]] static owner_id from_bits(std::uint64_t high, std::uint64_t low) noexcept;
  // Empty unless `text` is exactly 32 lower-case hexadecimal digits.
  [[nodiscard]] static std::optional<owner_id> parse(std::string_view text) noexcept;

  [[nodiscard]] std::string_view text() const noexcept { return {text_.data(), text_.size()}; }
  friend bool operator==(const owner_id&, const owner_id&) noexcept = default;
  friend bool operator<(const owner_id& a, const owner_id& b) noexcept { return a.text_ < b.text_; }

 private:
  std::array<char, digits> text_{};
};

// A lock was granted. Validity counts from *before* the request that earned it left.
struct grant {
  fencing_token token;
  duration ttl;  // what the store granted, which may differ from what was asked
  time_point counted_from;
  std::uint64_t block = 1;  // tokens reserved: token, token + 1, … for hand-over in the process
};

// Another holds it.
struct busy {
  holdfast::holder holder;
  std::optional<duration> remaining;  // empty: that holder's lock has no expiry
  // The attempt has a place in the store's own queue: giving up must withdraw it.
  bool queued = false;
  // The store wakes it; asking again, within this time, says "still here" and is a safety net for
  // lost messages. Empty: nobody will tell, so poll.
  std::optional<duration> ask_within{};
};

// Nobody can be granted it yet: the store answers, and will serve by itself. To wait for that is to
// wait for the lock.
struct not_yet {
  failure why;
};

using answer = std::variant<grant, busy, not_yet>;

}  // namespace holdfast::core
