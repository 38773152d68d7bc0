// Non-blocking stream sockets, with deadlines.
#pragma once

#include <string>
#include <string_view>

#include <holdfast/result.hpp>

#include "core/types.hpp"
#include "runtime/fd.hpp"

namespace holdfast::runtime {

// Connects, or fails with errc::store_unreachable by `until`. Looking a name up is bounded too.
[[nodiscard]] result<unique_fd> connect_tcp(const std::string& host, std::uint16_t port,
                                            core::time_point until);
[[nodiscard]] result<unique_fd> connect_unix(const std::string& path, core::time_point until);

enum class readiness { ready, timed_out, woken };

// Waits for `events` (POLLIN, POLLOUT) on fd, or for `wake_fd` (if any) to become readable.
[[nodiscard]] readiness wait_ready(int fd, short events, core::time_point until,
                                   int wake_fd = -1) noexcept;

struct io_outcome {
  std::size_t bytes = 0;
  bool would_block = false;
  int error = 0;  // errno, or -1 for "the other side closed"
};
[[nodiscard]] io_outcome send_some(int fd, std::string_view bytes) noexcept;  // never SIGPIPE
[[nodiscard]] io_outcome receive_some(int fd, char* into, std::size_t room) noexcept;

// What went wrong, for a message.
[[nodiscard]] std::string describe_io_error(int error);

}  // namespace holdfast::runtime
