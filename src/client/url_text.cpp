#include "client/url_text.hpp"

#include <charconv>

namespace holdfast::detail {

result<std::string> decode_url(std::string_view text, std::string_view part) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    unsigned byte = 0;
    const auto digits = text.substr(i + 1, 2);
    const auto* end = digits.data() + digits.size();
    if (digits.size() != 2 || std::from_chars(digits.data(), end, byte, 16).ptr != end) {
      return bad_url("the " + std::string{part} +
                     " in the store URL has a % that is not followed by two hexadecimal digits: "
                     "write % itself as %25");
    }
    out += static_cast<char>(byte);
    i += 2;
  }
  return out;
}

result<unsigned> url_number(std::string_view text, std::string_view part, unsigned least,
                            unsigned most) {
  unsigned value = 0;
  const auto* end = text.data() + text.size();
  const auto got = std::from_chars(text.data(), end, value);
  if (got.ec == std::errc{} && got.ptr == end && value >= least && value <= most) return value;
  // Not repeated here: what looks like a port may be the end of a password.
  return bad_url("the " + std::string{part} + " in the store URL must be a number from " +
                 std::to_string(least) + " to " + std::to_string(most));
}

}  // namespace holdfast::detail
