#include "runtime/stream.hpp"

#include <sys/socket.h>

#include <cerrno>

namespace holdfast::runtime {

namespace {

class polled_socket final : public stream {
 public:
  explicit polled_socket(unique_fd fd) noexcept : fd_{std::move(fd)} {}

  io_outcome send_some(std::string_view bytes) noexcept override {
    return runtime::send_some(fd_.get(), bytes);
  }
  io_outcome receive_some(char* into, std::size_t room) noexcept override {
    return runtime::receive_some(fd_.get(), into, room);
  }
  io_outcome peek() noexcept override {
    char byte = 0;
    const auto got = ::recv(fd_.get(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    if (got > 0) return {1, false, 0};
    if (got == 0) return {0, false, -1};
    if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) return {0, true, 0};
    return {0, false, errno};
  }
  int fd() const noexcept override { return fd_.get(); }
  bool wake_at(int bytes) noexcept override {
    return ::setsockopt(fd_.get(), SOL_SOCKET, SO_RCVLOWAT, &bytes, sizeof bytes) == 0;
  }
  bool tells(std::function<void()> readable) override {
    static_cast<void>(readable);
    return false;
  }
  void shut_down() noexcept override { ::shutdown(fd_.get(), SHUT_RDWR); }

 private:
  const unique_fd fd_;
};

}  // namespace

std::unique_ptr<stream> socket_stream(unique_fd fd) {
  return std::make_unique<polled_socket>(std::move(fd));
}

std::string describe_end(const stream& of, int error) {
  const auto why = of.trouble();
  return why ? why->message : describe_io_error(error);
}

}  // namespace holdfast::runtime
