// An error reply of Redis as one of our failures.
#pragma once

#include <string_view>

#include <holdfast/error.hpp>

namespace holdfast::stores::redis {

[[nodiscard]] failure translate_error(std::string_view said, const std::string& node);
// Whether the server says that it is not the master (any more), or not yet: behind the same address
// another may be by now.
[[nodiscard]] bool says_demoted(std::string_view said) noexcept;
// Whether a node of a cluster says that it did not run the request, and another may, or it later.
[[nodiscard]] bool says_elsewhere(std::string_view said) noexcept;
[[nodiscard]] bool is_noscript(std::string_view said) noexcept;

}  // namespace holdfast::stores::redis
