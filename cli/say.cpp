#include "say.hpp"

#include <cstdio>
#include <exception>

#include <fmt/format.h>

#include <holdfast/status.hpp>

#include "exit_code.hpp"

namespace holdfast::cli {

void say(std::string_view text) noexcept {
  try {
    const std::string line = fmt::format("holdfast: {}\n", text);
    std::fwrite(line.data(), 1, line.size(), stderr);
  } catch (const std::exception&) {
    std::fputs("holdfast: out of memory\n", stderr);
  }
}

int say_failure(errc code, std::string_view message) noexcept {
  try {
    say(escape(message));
  } catch (const std::exception&) {
    say("out of memory");
  }
  return exit_code_for(code);
}

int say_failure(const holdfast::error& what) noexcept {
  return say_failure(static_cast<errc>(what.code().value()), what.what());
}

std::string in_quotes(std::string_view bytes) { return fmt::format("'{}'", escape(bytes)); }

std::string without_urls(std::string_view text) {
  std::string result;
  for (;;) {
    const auto mark = text.find("://");
    if (mark == std::string_view::npos) return result.append(text);
    result.append(text.substr(0, mark)).append("://...");
    const auto end = text.find_first_of(" \t\n", mark);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end);
  }
}

}  // namespace holdfast::cli
