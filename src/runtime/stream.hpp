// The bytes of one connection.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string_view>

#include <holdfast/error.hpp>

#include "runtime/fd.hpp"
#include "runtime/socket.hpp"

namespace holdfast::runtime {

// A socket, or what takes its place: TLS on a socket, a simulated network, an application's event
// loop. Sending and receiving never block. Thread-safe as a socket is: one thread may send while
// another receives; shut_down() may come at any time.
class stream {
 public:
  stream() = default;
  stream(const stream&) = delete;
  stream& operator=(const stream&) = delete;
  virtual ~stream() = default;

  // Bytes that were not taken because it would block are sent again, in front of any others.
  [[nodiscard]] virtual io_outcome send_some(std::string_view bytes) noexcept = 0;
  [[nodiscard]] virtual io_outcome receive_some(char* into, std::size_t room) noexcept = 0;
  // What receive_some() would say about one byte; the byte stays where it is.
  [[nodiscard]] virtual io_outcome peek() noexcept = 0;

  // Readable when there is something to receive; -1 for a stream that tells by itself.
  [[nodiscard]] virtual int fd() const noexcept = 0;
  // What has come may have been taken from fd() already: to be asked before fd() is polled.
  [[nodiscard]] virtual bool has_buffered() const noexcept { return false; }
  // Why it is over, where more is known than the error of a call.
  [[nodiscard]] virtual std::optional<failure> trouble() const { return std::nullopt; }
  // A thread that polls fd() is woken by so many bytes, or by the end. False if that cannot be had.
  virtual bool wake_at(int bytes) noexcept = 0;
  // Calls `readable` whenever there is something to receive, so that no thread has to poll. False
  // for a stream that is polled.
  [[nodiscard]] virtual bool tells(std::function<void()> readable) = 0;

  // Ends both directions, and wakes a thread that polls.
  virtual void shut_down() noexcept = 0;
};

[[nodiscard]] std::unique_ptr<stream> socket_stream(unique_fd fd);

// What ended it, for a message. `error`: of the call that failed.
[[nodiscard]] std::string describe_end(const stream& of, int error);

}  // namespace holdfast::runtime
