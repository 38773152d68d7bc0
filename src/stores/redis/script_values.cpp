#include "stores/redis/script_values.hpp"

#include <algorithm>
#include <charconv>

#include "stores/redis/layout.hpp"

namespace holdfast::stores::redis {

std::string milliseconds_text(core::duration value) {
  return std::to_string(std::chrono::ceil<std::chrono::milliseconds>(value).count());
}

std::string digits(std::uint64_t value, std::size_t width) {
  const auto text = std::to_string(value);
  return text.size() < width ? std::string(width - text.size(), '0') + text : text;
}

std::uint64_t read_number(std::string_view text) noexcept {
  std::uint64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

std::optional<core::duration> read_pttl(const reply_value& pttl) {
  if (pttl.type != reply_kind::integer || pttl.integer < 0) return std::nullopt;
  // Another client may have set any expiry; beyond this, nanoseconds overflow.
  constexpr long long longest_ms = 1000LL * 3600 * 24 * 365 * 100;
  return std::chrono::milliseconds{std::min(pttl.integer, longest_ms)};
}

core::duration read_time(const reply_value& seconds, const reply_value& micros) {
  return std::chrono::seconds{read_number(text_of(seconds))} +
         std::chrono::microseconds{read_number(text_of(micros))};
}

failure strange_answer(const std::string& node) {
  return {errc::incompatible, node + " gave an answer that makes no sense for our script", {}};
}

result<void> check_key(std::string_view key) {
  if (!key.starts_with(reserved_prefix)) return {};
  return fail(errc::invalid_argument, "names that begin with \"" + std::string{reserved_prefix} +
                                          "\" are kept for Holdfast's own keys");
}

std::string scan_pattern(std::string_view prefix, std::string_view pattern) {
  std::string match;
  for (const char c : prefix) {
    if (std::string_view{"*?[]\\"}.find(c) != std::string_view::npos) match += '\\';
    match += c;
  }
  match += pattern;
  return match;
}

command scan_step(std::string_view cursor, std::string_view match, std::string_view type) {
  constexpr long long keys_looked_at = 500;  // so that no step stops the server
  command scan{8};
  scan.arg("SCAN").arg(cursor).arg("MATCH").arg(match);
  scan.arg("COUNT").arg(keys_looked_at).arg("TYPE").arg(type);
  return scan;
}

}  // namespace holdfast::stores::redis
