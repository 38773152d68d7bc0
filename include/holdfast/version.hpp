// The library's version.
#pragma once

#include <string_view>

#include <holdfast/export.hpp>

namespace holdfast {

// Of the library that is loaded, which may be newer than the headers a program was built with.
[[nodiscard]] HOLDFAST_API std::string_view version() noexcept;

}  // namespace holdfast
