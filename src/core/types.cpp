#include "core/types.hpp"

#include <algorithm>

namespace holdfast::core {

namespace {
constexpr std::string_view hex = "0123456789abcdef";
}

owner_id owner_id::from_bits(std::uint64_t high, std::uint64_t low) noexcept {
  owner_id id;
  for (std::size_t i = 0; i < digits / 2; ++i) {
    const unsigned shift = 60 - 4 * static_cast<unsigned>(i);
    id.text_[i] = hex[(high >> shift) & 0xf];
    id.text_[digits / 2 + i] = hex[(low >> shift) & 0xf];
  }
  return id;
}

std::optional<owner_id> owner_id::parse(std::string_view text) noexcept {
  if (text.size() != digits) return std::nullopt;
  const bool is_hex = std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
  });
  if (!is_hex) return std::nullopt;
  owner_id id;
  std::copy(text.begin(), text.end(), id.text_.begin());
  return id;
}

}  // namespace holdfast::core
