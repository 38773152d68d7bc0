// Fencing tokens: the number that lets a resource turn away a holder that has been overtaken.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <ostream>
#include <string>

namespace holdfast {

// A number that strictly increases from each grant of a lock to the next. A value type.
//
// Hand it to whatever the lock protects, before the first read (see fence.hpp): a resource that
// remembers the highest token it has seen can refuse a late write of an earlier holder.
// Tokens stay below 2^53, so that they survive JSON and Lua; they are only comparable for one lock.
class fencing_token {
 public:
  constexpr fencing_token() noexcept = default;
  constexpr explicit fencing_token(std::uint64_t value) noexcept : value_{value} {}

  [[nodiscard]] constexpr std::uint64_t value() const noexcept { return value_; }
  friend constexpr auto operator<=>(fencing_token, fencing_token) noexcept = default;

 private:
  std::uint64_t value_ = 0;
};

[[nodiscard]] inline std::string to_string(fencing_token token) {
  return std::to_string(token.value());
}

// By way of text: a number would follow the stream's base and the grouping of its locale.
inline std::ostream& operator<<(std::ostream& to, fencing_token token) {
  return to << to_string(token);
}

}  // namespace holdfast

template <>
struct std::hash<holdfast::fencing_token> {
  std::size_t operator()(holdfast::fencing_token token) const noexcept {
    return std::hash<std::uint64_t>{}(token.value());
  }
};
