// Where one request of HTTP/1.1 ends: all that a proxy needs to know of it.
#pragma once

#include <charconv>
#include <cstddef>
#include <string_view>

namespace holdfast::test {

// The length of the first complete request in `bytes`, 0 if there is none yet. Its body, if any,
// has a Content-Length.
[[nodiscard]] inline std::size_t first_request(std::string_view bytes) {
  constexpr std::string_view end_of_head = "\r\n\r\n";
  constexpr std::string_view length = "\r\nContent-Length: ";
  const auto head = bytes.find(end_of_head);
  if (head == std::string_view::npos) return 0;
  std::size_t body = 0;
  const auto at = bytes.substr(0, head).find(length);
  if (at != std::string_view::npos) {
    const auto* const from = bytes.data() + at + length.size();
    std::from_chars(from, bytes.data() + head, body);
  }
  const auto size = head + end_of_head.size() + body;
  return size <= bytes.size() ? size : 0;
}

}  // namespace holdfast::test
