// What an attempt knows of its place in a store's queue, and which grants sent to it count.
#pragma once

#include <cstdint>
#include <optional>

#include "core/types.hpp"

namespace holdfast::core {

// A waiter says "still here" this often within a claim TTL: often enough that one lost message or
// slow answer does not make it look silent.
inline constexpr int asks_per_claim = 4;
// However long the claim: the keys of a queue expire ten minutes after the last sign of a waiter.
inline constexpr duration ask_within_max = std::chrono::minutes{1};

[[nodiscard]] constexpr duration ask_within(duration claim) noexcept {
  return claim / asks_per_claim < ask_within_max ? claim / asks_per_claim : ask_within_max;
}

// A value type. A grant that the store makes by itself arrives as a message, which may be late: the
// attempt may have been granted, not have taken it up in time, and be waiting again while others
// are served. And nothing in the message says when it was granted by our clock.
//
// Both are answered by the latest request that was answered "queued": a grant that counts came
// after it, so its token is above the store's counter of then, and its validity may be counted from
// when that request was sent.
class queue_place {
 public:
  void queued(time_point asked_at, std::uint64_t counter) noexcept {
    queued_from_ = asked_at;
    counter_ = counter;
  }

  // Nothing: it is stale. Before the first answer it counts, but for no time at all.
  [[nodiscard]] std::optional<grant> accept(fencing_token token, duration claim,
                                            std::uint64_t block) const noexcept {
    if (token.value() <= counter_) return std::nullopt;
    return grant{token, claim, queued_from_, block};
  }

 private:
  time_point queued_from_{};
  std::uint64_t counter_ = 0;
};

// After an attempt's last ask was followed by a release: whether it surely holds nothing, now and
// later. `open`: asks that are still on their way, or went down with their connection. Only having
// found its lock, and no other's, proves that none will arrive after this.
[[nodiscard]] constexpr bool surely_withdrawn(std::size_t asks, std::size_t open,
                                              bool found_held) noexcept {
  return open == 0 || (asks == 1 && found_held);
}

}  // namespace holdfast::core
