// The private server behind `local:` URLs: looking at it and stopping it. Clients start it.
#pragma once

#include <cstdint>
#include <string>

#include <holdfast/export.hpp>
#include <holdfast/result.hpp>

namespace holdfast::local {

struct server_status {
  bool running = false;
  std::string folder{};  ///< derived from the user id alone; mode 0700
  std::string socket{};
  std::int64_t pid = 0;  ///< 0 when not running
};

// Never starts a server.
[[nodiscard]] HOLDFAST_API result<server_status> status();

// Stops the server if it runs and waits until it is gone; false if it did not run. Every lock on it
// is lost: holders hear of it at their next renewal.
[[nodiscard]] HOLDFAST_API result<bool> stop();

}  // namespace holdfast::local
