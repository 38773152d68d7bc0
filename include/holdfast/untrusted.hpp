// Showing what others wrote: a lock's name, label, host and value are untrusted bytes.
#pragma once

#include <string>
#include <string_view>

#include <holdfast/export.hpp>

namespace holdfast::untrusted {

// Untrusted bytes as printable text on one line: control characters, invalid UTF-8, characters
// that change the direction of text, and the backslash become \xNN, \n, \t, \\. Reversible.
[[nodiscard]] HOLDFAST_API std::string escape(std::string_view bytes);

}  // namespace holdfast::untrusted
