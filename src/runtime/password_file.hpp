// Passwords that are kept in files.
#pragma once

#include <string>

#include <holdfast/result.hpp>

namespace holdfast::runtime {

// The first line of a file; errc::not_authenticated if there is none.
[[nodiscard]] result<std::string> read_password(const std::string& path);

}  // namespace holdfast::runtime
