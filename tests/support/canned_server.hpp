// A server on a loopback port that is not Redis: whatever it hears, it says one thing and hangs up.
#pragma once

#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace holdfast::test {

// With nothing to say it listens, and neither answers nor hangs up.
class canned_server {
 public:
  explicit canned_server(std::string says) : says_{std::move(says)} {
    listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* generic = reinterpret_cast<sockaddr*>(&address);
    if (::bind(listener_, generic, size) != 0 || ::listen(listener_, 64) != 0 ||
        ::getsockname(listener_, generic, &size) != 0) {
      std::abort();
    }
    port_ = ntohs(address.sin_port);
    thread_ = std::thread{[this] { run(); }};
  }
  canned_server(const canned_server&) = delete;
  canned_server& operator=(const canned_server&) = delete;
  ~canned_server() {
    const std::uint64_t one = 1;
    if (::write(stop_, &one, sizeof one) < 0) std::abort();
    thread_.join();
    ::close(listener_);
    ::close(stop_);
  }

  [[nodiscard]] std::string url() const { return "redis://127.0.0.1:" + std::to_string(port_); }

 private:
  void run() {
    std::vector<int> open;
    while (true) {
      std::array<pollfd, 2> fds{{{stop_, POLLIN, 0}, {listener_, POLLIN, 0}}};
      if (::poll(fds.data(), fds.size(), -1) < 0) continue;
      if (fds[0].revents != 0) break;
      const int fd = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      if (fd < 0) continue;
      if (says_.empty()) {
        open.push_back(fd);
        continue;
      }
      std::array<char, 4096> heard{};
      if (::recv(fd, heard.data(), heard.size(), 0) > 0) {
        (void)::send(fd, says_.data(), says_.size(), MSG_NOSIGNAL);
      }
      ::close(fd);
    }
    for (const int fd : open)
      ::close(fd);
  }

  const std::string says_;
  int listener_ = -1;
  int stop_ = ::eventfd(0, EFD_CLOEXEC);
  std::uint16_t port_ = 0;
  std::thread thread_;
};

}  // namespace holdfast::test
