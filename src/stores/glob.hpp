// Patterns as Redis' KEYS takes them: * ? [abc] [^a] [a-z] and \ to take the next byte as it is.
#pragma once

#include <string_view>

namespace holdfast::stores {

[[nodiscard]] bool glob_matches(std::string_view pattern, std::string_view text) noexcept;

}  // namespace holdfast::stores
