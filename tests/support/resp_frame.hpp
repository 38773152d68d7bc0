// Where one message of the Redis protocol ends: all that a proxy needs to know of it.
#pragma once

#include <charconv>
#include <cstddef>
#include <optional>
#include <string_view>

namespace holdfast::test {

namespace detail {

// The end of the value that starts at `at`, or nothing while it is incomplete.
inline std::optional<std::size_t> end_of_value(std::string_view bytes, std::size_t at) {
  const std::size_t line = bytes.find("\r\n", at);
  if (line == std::string_view::npos) return std::nullopt;
  const std::size_t next = line + 2;
  long long count = 0;
  std::from_chars(bytes.data() + at + 1, bytes.data() + line, count);
  switch (bytes[at]) {
    case '$':
    case '=':
    case '!': {
      if (count < 0) return next;
      const std::size_t end = next + static_cast<std::size_t>(count) + 2;
      return end <= bytes.size() ? std::optional{end} : std::nullopt;
    }
    case '%':
      count *= 2;
      [[fallthrough]];
    case '*':
    case '~':
    case '>': {
      std::size_t end = next;
      for (long long i = 0; i < count; ++i) {
        const auto item = end < bytes.size() ? end_of_value(bytes, end) : std::nullopt;
        if (!item) return std::nullopt;
        end = *item;
      }
      return end;
    }
    default:
      return next;
  }
}

}  // namespace detail

// The length of the first complete message in `bytes`, 0 if there is none yet.
[[nodiscard]] inline std::size_t first_message(std::string_view bytes) {
  if (bytes.empty()) return 0;
  return detail::end_of_value(bytes, 0).value_or(0);
}

}  // namespace holdfast::test
