// What goes to stderr: one line, `holdfast: …`. Never throws: a closed stderr must not change what
// a command does.
#pragma once

#include <string>
#include <string_view>

#include <holdfast/error.hpp>
#include <holdfast/untrusted.hpp>

namespace holdfast::cli {

using untrusted::escape;

// `text` is shown as it is: escape() whatever in it came from elsewhere.
void say(std::string_view text) noexcept;

// Says what went wrong and returns the exit code for it.
int say_failure(errc code, std::string_view message) noexcept;
int say_failure(const holdfast::error& what) noexcept;

// Untrusted text in quotes.
[[nodiscard]] std::string in_quotes(std::string_view bytes);

// The same text with everything that looks like a URL cut after its scheme: messages of the
// option parser repeat what was typed, and a URL may hold a password.
[[nodiscard]] std::string without_urls(std::string_view text);

}  // namespace holdfast::cli
