// Values as our scripts take and give them, on one server or on many.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <holdfast/result.hpp>

#include "core/types.hpp"
#include "stores/redis/resp.hpp"

namespace holdfast::stores::redis {

// Milliseconds, rounded up: a server must not let go before we think it does.
[[nodiscard]] std::string milliseconds_text(core::duration value);

// With leading zeros: read by the positions of fields.
[[nodiscard]] std::string digits(std::uint64_t value, std::size_t width);
// What is no number is 0.
[[nodiscard]] std::uint64_t read_number(std::string_view text) noexcept;
// Empty: no expiry.
[[nodiscard]] std::optional<core::duration> read_pttl(const reply_value& pttl);
// The answer to TIME: since 1970, by the server's wall clock.
[[nodiscard]] core::duration read_time(const reply_value& seconds, const reply_value& micros);

[[nodiscard]] failure strange_answer(const std::string& node);

// Names that begin like keys of our own are refused.
[[nodiscard]] result<void> check_key(std::string_view key);

// list() is for people: more than this is cut.
inline constexpr std::size_t listed_max = 10'000;
// For SCAN: the prefix is literal text, the rest a pattern.
[[nodiscard]] std::string scan_pattern(std::string_view prefix, std::string_view pattern);
// One step of a walk through the keys of this type that match.
[[nodiscard]] command scan_step(std::string_view cursor, std::string_view match,
                                std::string_view type = "string");

}  // namespace holdfast::stores::redis
