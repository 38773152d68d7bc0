// An error reply of Redis as one of our failures.
#pragma once

#include <string_view>

#include <holdfast/error.hpp>

namespace holdfast::stores::redis {

[[nodiscard]] failure translate_error(std::string_view said, const std::string& node);
[[nodiscard]] bool is_noscript(std::string_view said) noexcept;

}  // namespace holdfast::stores::redis
