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

// Never starts a server. errc::store_unreachable if a server lives but its folder was deleted.
[[nodiscard]] HOLDFAST_API result<server_status> status();

// Stops the server if it runs and waits until it is gone; false if it did not run. Locks stay in
// its file: a server that is started again before their TTL is over still knows them, so that
// stopping it never lets a second holder in. A client that is in use starts it again.
[[nodiscard]] HOLDFAST_API result<bool> stop();

}  // namespace holdfast::local
