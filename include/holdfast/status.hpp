// Who holds what.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <holdfast/export.hpp>
#include <holdfast/token.hpp>

namespace holdfast {

// Everything here was written by whoever holds the lock: untrusted bytes. escape() before showing.
struct holder {
  bool foreign = false;  ///< not written by Holdfast: only `value` is known
  std::string host{};
  std::int64_t pid = 0;
  std::string label{};
  fencing_token token{};
  std::chrono::system_clock::time_point since{};
  std::string value{};  ///< a foreign holder's raw value, cut at 256 bytes
};

struct lock_status {
  std::string name{};
  std::optional<holdfast::holder> holder{};  ///< empty: free
  // How long until the store lets go by itself. Empty while held: it never does.
  std::optional<std::chrono::milliseconds> remaining{};
};

// Untrusted bytes as printable text on one line: control characters, invalid UTF-8, characters
// that change the direction of text, and the backslash become \xNN, \n, \t, \\. Reversible.
[[nodiscard]] HOLDFAST_API std::string escape(std::string_view bytes);

}  // namespace holdfast
