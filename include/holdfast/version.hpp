// The library's version.
#pragma once

#include <string_view>

#include <holdfast/export.hpp>

// Of these headers. A test holds them to the version that CMakeLists.txt says.
#define HOLDFAST_VERSION_MAJOR 0
#define HOLDFAST_VERSION_MINOR 1
#define HOLDFAST_VERSION_PATCH 0
#define HOLDFAST_VERSION "0.1.0"

namespace holdfast {

// Of the library that is loaded, which may be newer than the headers a program was built with.
[[nodiscard]] HOLDFAST_API std::string_view version() noexcept;

}  // namespace holdfast
