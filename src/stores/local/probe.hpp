// Asking whether a local server is there, with nothing but a socket: the Redis store's client is
// another room's, and a server that hangs or loads must be told apart from one that is dead.
#pragma once

#include <cstdint>
#include <string>

#include <holdfast/result.hpp>

#include "core/types.hpp"
#include "runtime/fd.hpp"

namespace holdfast::stores::local {

// A connection to the socket, if anybody listens there.
struct contact {
  runtime::unique_fd fd;
  bool listening = false;  // true without a descriptor: its queue of connections is full
  std::int64_t pid = 0;    // 0: not known, or in another pid namespace
};
// Fails with errc::unsafe_folder if another user's process listens.
[[nodiscard]] result<contact> connect_server(const std::string& socket_path,
                                             core::time_point until);

enum class presence {
  absent,   // nobody listens, or it closed the connection: ended or ending
  silent,   // a process listens but did not answer in time
  loading,  // reading its file
  ready,    // it answers, be it with an error: the rest is between it and the Redis store
};
struct sighting {
  presence state = presence::absent;
  std::int64_t pid = 0;
};
[[nodiscard]] result<sighting> look_for_server(const std::string& socket_path,
                                               core::time_point until);

}  // namespace holdfast::stores::local
