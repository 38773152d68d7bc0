// One connection shared by callers, over a pair of sockets whose other end plays the server.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cstdlib>
#include <functional>
#include <optional>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "runtime/clock.hpp"
#include "runtime/fd.hpp"
#include "stores/redis/channel.hpp"

namespace holdfast::test {

inline const std::string ping = stores::redis::command{1}.arg("PING").bytes();

class Channel : public testing::Test {
 protected:
  Channel() {
    std::array<int, 2> ends{};
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) std::abort();
    server_.reset(ends[1]);
    connection_.emplace(runtime::socket_stream(runtime::unique_fd{ends[0]}), "db:6379",
                        std::chrono::microseconds{40});
  }

  ~Channel() override {
    if (serving_.joinable()) serving_.join();
  }

  // Hears one command, then does that.
  void once_heard(std::function<void()> then) {
    serving_ = std::thread{[this, then = std::move(then)] {
      static_cast<void>(server_heard(ping.size()));
      then();
    }};
  }
  void served() { serving_.join(); }
  void server_says(std::string_view bytes) {
    ASSERT_EQ(::send(server_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }
  void server_hangs_up() { server_.reset(); }
  [[nodiscard]] std::string server_heard(std::size_t bytes) const {
    std::string heard(bytes, '\0');
    return ::recv(server_.get(), heard.data(), bytes, MSG_WAITALL) < 0 ? "" : heard;
  }
  [[nodiscard]] bool server_heard_no_more() const {
    char one = 0;
    return ::recv(server_.get(), &one, 1, MSG_DONTWAIT) < 0;
  }

  // Returns when the reply at this position has been read, or the connection is broken, or then.
  void await(std::uint64_t position, core::time_point until) {
    stores::blocking_caller here;
    connection_->await(position, until, here, [] {});
    here.run();
  }

  static core::time_point soon() { return runtime::now() + std::chrono::seconds{10}; }
  static core::time_point at_once() { return runtime::now(); }

  std::thread serving_;
  runtime::unique_fd server_;
  std::optional<stores::redis::channel> connection_;
};

}  // namespace holdfast::test
