// The manual page, from the same words as --help.
#pragma once

#include <string>

#include <CLI/App.hpp>

namespace holdfast::cli {

[[nodiscard]] std::string man_page(const CLI::App& app, const std::string& version);

}  // namespace holdfast::cli
