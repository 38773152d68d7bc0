// What --help looks like where the parser's own way would mislead.
#pragma once

#include <string>

#include <CLI/CLI.hpp>

namespace holdfast::cli {

class help_formatter : public CLI::Formatter {
 public:
  // The parser never sees the command after `--`.
  std::string make_usage(const CLI::App* app, std::string name) const override {
    if (app->get_name() != "run") return CLI::Formatter::make_usage(app, name);
    return "Usage: holdfast run NAME... [OPTIONS] -- COMMAND [ARGS...]\n";
  }

  // --name is another way to write NAME: listed as an option of its own it would look like one
  // more thing that is required.
  std::string make_option(const CLI::Option* option, bool is_positional) const override {
    if (!is_positional && option->check_name("--name")) return {};
    return CLI::Formatter::make_option(option, is_positional);
  }
};

}  // namespace holdfast::cli
