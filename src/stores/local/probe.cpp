#include "stores/local/probe.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "runtime/clock.hpp"
#include "runtime/socket.hpp"
#include "stores/local/folder.hpp"

namespace holdfast::stores::local {

namespace {

// 0, or errno. Waits while the server's queue of connections is full.
int connect_to(int fd, const sockaddr_un& address, core::time_point until) noexcept {
  for (;;) {
    // sockaddr_un is passed as sockaddr by design of the sockets API.
    if (::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) return 0;
    if (errno == EINTR) continue;
    if (errno != EAGAIN || runtime::now() >= until) return errno;
    nap(until);
  }
}

// The first line of its answer without the line end, or what stopped us from getting it.
struct line {
  std::string text{};
  bool timed_out = false;
};
line ask(int fd, std::string_view request, core::time_point until) {
  constexpr std::size_t line_size_max = 512;  // errors of Redis are far shorter
  const auto sent = runtime::send_some(fd, request);
  if (sent.bytes != request.size()) return {.timed_out = sent.would_block};
  line answer;
  std::array<char, 256> buffer{};
  while (answer.text.size() < line_size_max) {
    const auto got = runtime::receive_some(fd, buffer.data(), buffer.size());
    if (got.would_block) {
      if (runtime::wait_ready(fd, POLLIN, until) == runtime::readiness::ready) continue;
      return {.timed_out = true};
    }
    if (got.error != 0) return {};
    answer.text.append(buffer.data(), got.bytes);
    if (const auto end = answer.text.find("\r\n"); end != std::string::npos) {
      answer.text.resize(end);
      break;
    }
  }
  return answer;
}

}  // namespace

result<contact> connect_server(const std::string& socket_path, core::time_point until) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (socket_path.size() >= sizeof address.sun_path) {
    return fail(errc::invalid_argument, "local: the path " + socket_path + " is too long: " +
                                            std::to_string(sizeof address.sun_path - 1) +
                                            " bytes are the most for a socket");
  }
  std::memcpy(static_cast<void*>(address.sun_path), socket_path.data(), socket_path.size());

  contact made{
      .fd = runtime::unique_fd{::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)}};
  const int error = made.fd ? connect_to(made.fd.get(), address, until) : errno;
  if (error == ENOENT || error == ECONNREFUSED) return contact{};
  if (error == EAGAIN) return contact{.fd = {}, .listening = true};
  if (error != 0) {
    return fail(errc::store_unreachable, "local: cannot connect to " + socket_path + ": " +
                                             runtime::describe_io_error(error));
  }
  made.listening = true;
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(made.fd.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return made;
  if (peer.uid != ::geteuid()) {
    return fail(errc::unsafe_folder, "local: a process of user id " + std::to_string(peer.uid) +
                                         " listens on " + socket_path +
                                         "; end it and remove the socket");
  }
  made.pid = peer.pid;
  return made;
}

result<sighting> look_for_server(const std::string& socket_path, core::time_point until) {
  auto made = connect_server(socket_path, until);
  if (!made) return fail(std::move(made.error()));
  if (!made->listening) return sighting{};
  if (!made->fd) return sighting{presence::silent, 0};
  const line answer = ask(made->fd.get(), "*1\r\n$4\r\nPING\r\n", until);
  if (answer.timed_out) return sighting{presence::silent, made->pid};
  if (answer.text.empty()) return sighting{presence::absent, made->pid};
  if (answer.text.starts_with("-LOADING")) return sighting{presence::loading, made->pid};
  if (answer.text.front() == '+' || answer.text.front() == '-') {
    return sighting{presence::ready, made->pid};
  }
  return fail(errc::incompatible, "local: what listens on " + socket_path + " (pid " +
                                      std::to_string(made->pid) + ") is not a Redis server");
}

}  // namespace holdfast::stores::local
