// Showing untrusted bytes: names and labels come from the lock's holder, and must not be able
// to move a cursor, forge a line of a log or turn text around.
#include <array>
#include <cstdint>

#include <holdfast/untrusted.hpp>

namespace holdfast::untrusted {

namespace {

struct code_point {
  std::uint32_t value = 0;
  std::size_t bytes = 0;  // 0: not valid UTF-8
};

code_point decode(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned lead = byte(0);
  const std::size_t bytes = lead < 0x80   ? 1
                            : lead < 0xc2 ? 0
                            : lead < 0xe0 ? 2
                            : lead < 0xf0 ? 3
                            : lead < 0xf5 ? 4
                                          : 0;
  if (bytes == 0 || bytes > text.size()) return {};
  if (bytes == 1) return {lead, 1};
  std::uint32_t value = lead & (0xffU >> (bytes + 1));
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xc0U) != 0x80U) return {};
    value = (value << 6) | (byte(i) & 0x3fU);
  }
  constexpr std::array<std::uint32_t, 5> smallest{0, 0, 0x80, 0x800, 0x10000};
  if (value < smallest.at(bytes) || value > 0x10ffff) return {};
  if (value >= 0xd800 && value <= 0xdfff) return {};
  return {value, bytes};
}

bool is_shown_as_is(std::uint32_t c) {
  if (c < 0x20 || (c >= 0x7f && c < 0xa0)) return false;
  if (c == '\\') return false;
  if (c == 0xad || c == 0x61c || c == 0xfeff) return false;  // soft hyphen, marks, BOM
  if (c >= 0x200b && c <= 0x200f) return false;              // zero width, direction marks
  if (c >= 0x2028 && c <= 0x202e) return false;              // line separators, direction
  if (c >= 0x2060 && c <= 0x206f) return false;              // invisible operators, isolates
  if (c >= 0xfff9 && c <= 0xfffb) return false;              // interlinear
  return c < 0xe0000 || c > 0xe0fff;                         // tags
}

}  // namespace

std::string escape(std::string_view bytes) {
  constexpr std::string_view hex = "0123456789abcdef";
  std::string shown;
  shown.reserve(bytes.size());
  while (!bytes.empty()) {
    const auto next = decode(bytes);
    if (next.bytes > 0 && is_shown_as_is(next.value)) {
      shown += bytes.substr(0, next.bytes);
      bytes.remove_prefix(next.bytes);
      continue;
    }
    const std::size_t taken = next.bytes > 0 ? next.bytes : 1;
    for (const char c : bytes.substr(0, taken)) {
      const auto b = static_cast<unsigned char>(c);
      switch (c) {
        case '\\':
          shown += "\\\\";
          break;
        case '\n':
          shown += "\\n";
          break;
        case '\r':
          shown += "\\r";
          break;
        case '\t':
          shown += "\\t";
          break;
        default:
          shown += "\\x";
          shown += hex[b >> 4];
          shown += hex[b & 0xf];
      }
    }
    bytes.remove_prefix(taken);
  }
  return shown;
}

}  // namespace holdfast::untrusted
