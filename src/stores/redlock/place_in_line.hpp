// Where a waiter stands on the nodes.
#pragma once

#include <atomic>
#include <optional>
#include <string>
#include <string_view>

#include "core/types.hpp"
#include "stores/redis/script_values.hpp"

namespace holdfast::stores::redlock {

// What a node keeps of a waiter, as far as others need it. scripts/release.lua has the whole of it,
// and reads it by the positions of its fields as well.
struct standing_ask {
  static constexpr std::size_t inbox_at = core::owner_id::digits;
  static constexpr std::size_t claim_at = inbox_at + core::owner_id::digits;
  static constexpr std::size_t claim_digits = 8;
  static constexpr std::size_t holder_at = claim_at + claim_digits;
  static_assert(inbox_at == 32 && claim_at == 64 && holder_at == 72);

  core::owner_id attempt;
  std::string_view inbox;   // the client's
  std::string_view holder;  // as redis::describe_holder()

  // Nothing if it was not written so.
  [[nodiscard]] static std::optional<standing_ask> parse(std::string_view text) {
    const auto attempt = core::owner_id::parse(text.substr(0, core::owner_id::digits));
    if (!attempt || text.size() < holder_at) return std::nullopt;
    return standing_ask{*attempt, text.substr(inbox_at, claim_at - inbox_at),
                        text.substr(holder_at)};
  }
};

// Where a waiter is to be called, and for how long it may have the lock unheard: as it stands in a
// standing ask.
[[nodiscard]] inline std::string call_to(std::string_view inbox, core::duration claim) {
  const auto ms = std::chrono::ceil<std::chrono::milliseconds>(claim).count();
  return std::string{inbox} +
         redis::digits(static_cast<std::uint64_t>(ms), standing_ask::claim_digits);
}

// The same for all attempts of one acquisition.
struct place_in_line {
  std::string ticket;  // when it came, µs by its own wall clock
  std::string call;    // as call_to()
  std::string holder;  // as redis::describe_holder()
  // Until it is granted or gives up. Late answers of earlier attempts must not put it back in line.
  std::atomic<bool> waits{true};
  // One of them has: others may have granted at once all the same.
  std::atomic<bool> joined{false};

  // The standing ask of one of them, as the nodes keep it.
  [[nodiscard]] std::string entry(const core::owner_id& attempt) const {
    return std::string{attempt.text()} + call + holder;
  }
};

}  // namespace holdfast::stores::redlock
