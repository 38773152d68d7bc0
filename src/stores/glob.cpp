#include "stores/glob.hpp"

#include <algorithm>
#include <cstddef>

namespace holdfast::stores {

namespace {

// Takes one element other than * off `pattern`; whether it matches `c`.
bool matches_one(std::string_view& pattern, char c) noexcept {
  const char first = pattern.front();
  pattern.remove_prefix(1);
  if (first == '?') return true;
  if (first == '\\' && !pattern.empty()) {
    const char literal = pattern.front();
    pattern.remove_prefix(1);
    return literal == c;
  }
  if (first != '[') return first == c;

  const bool negated = !pattern.empty() && pattern.front() == '^';
  if (negated) pattern.remove_prefix(1);
  bool found = false;
  while (!pattern.empty()) {
    if (pattern.size() > 1 && pattern[0] == '\\') {  // as it is, and it begins no range
      found = found || pattern[1] == c;
      pattern.remove_prefix(2);
    } else if (pattern[0] == ']') {
      break;
    } else if (pattern.size() > 2 && pattern[1] == '-') {  // also when it ends with ]
      const auto [low, high] = std::minmax(pattern[0], pattern[2]);
      found = found || (c >= low && c <= high);
      pattern.remove_prefix(3);
    } else {
      found = found || pattern[0] == c;
      pattern.remove_prefix(1);
    }
  }
  if (!pattern.empty()) pattern.remove_prefix(1);
  return found != negated;
}

}  // namespace

bool glob_matches(std::string_view pattern, std::string_view text) noexcept {
  // On a mismatch, the last * takes one byte more: no recursion, so no pattern is expensive.
  std::string_view after_star;
  std::string_view star_text;
  bool starred = false;
  for (;;) {
    if (!pattern.empty() && pattern.front() == '*') {
      pattern.remove_prefix(1);
      after_star = pattern;
      star_text = text;
      starred = true;
      continue;
    }
    if (text.empty() && pattern.empty()) return true;
    if (!text.empty() && !pattern.empty()) {
      auto rest = pattern;
      if (matches_one(rest, text.front())) {
        pattern = rest;
        text.remove_prefix(1);
        continue;
      }
    }
    if (!starred || star_text.empty()) return false;
    star_text.remove_prefix(1);
    text = star_text;
    pattern = after_star;
  }
}

}  // namespace holdfast::stores
