// Writing to stdout, and knowing whether it worked.
#pragma once

#include <string_view>

namespace holdfast::cli {

// False, and said on stderr, if not all of it could be written: a full disk, a reader that is gone.
[[nodiscard]] bool print(std::string_view text) noexcept;

}  // namespace holdfast::cli
