// Starting redis-server as a daemon that outlives us, from a program that may have threads.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <holdfast/result.hpp>

#include "core/types.hpp"
#include "runtime/fd.hpp"

namespace holdfast::stores::local {

// A server process that holds the folder's life lock and is about to be redis-server.
class launched {
 public:
  launched(std::int64_t pid, runtime::unique_fd pidfd, runtime::unique_fd report) noexcept
      : pid_{pid}, pidfd_{std::move(pidfd)}, report_{std::move(report)} {}

  [[nodiscard]] std::int64_t pid() const noexcept { return pid_; }
  [[nodiscard]] bool ended() const noexcept;
  // Why it never became redis-server, as errno; 0 if it did.
  [[nodiscard]] int exec_error() const noexcept;

 private:
  std::int64_t pid_;
  runtime::unique_fd pidfd_;
  runtime::unique_fd report_;
};

// Starts `binary` in the folder (whose `socket_path` it serves), under the start lock. It has no
// terminal, no descriptor, signal setting or environment of ours, and is nobody's child that we
// would have to wait for. Empty: another process took the life lock first, and is or becomes the
// server to wait for.
[[nodiscard]] result<std::optional<launched>> launch_server(const std::string& binary, int folder,
                                                            const std::string& socket_path,
                                                            core::time_point until);

// Descriptor of a process, readable once it has ended; empty if it has ended already or cannot be
// seen (another pid namespace).
[[nodiscard]] runtime::unique_fd open_process(std::int64_t pid) noexcept;

}  // namespace holdfast::stores::local
