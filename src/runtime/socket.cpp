#include "runtime/socket.hpp"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>

#include "runtime/clock.hpp"

namespace holdfast::runtime {

namespace {

// A resolver that hangs must not gather threads.
constexpr int lookups_max = 8;
std::atomic<int> lookups{0};

using address_list = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

address_list look_up(const std::string& host, std::uint16_t port, int flags, int& failed) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  failed = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  return {failed == 0 ? found : nullptr, &::freeaddrinfo};
}

// getaddrinfo() has no deadline, and a broken resolver takes half a minute. A thread waits for it
// instead of us; if we give up first, it ends by itself and frees what it found.
result<address_list> resolve(const std::string& host, std::uint16_t port, core::time_point until) {
  int failed = 0;
  if (auto numeric = look_up(host, port, AI_NUMERICHOST, failed)) return numeric;

  struct lookup {
    std::mutex m;
    std::condition_variable answered;
    bool done = false;
    int failed = 0;
    address_list found{nullptr, &::freeaddrinfo};
  };
  if (lookups.fetch_add(1) >= lookups_max) {
    lookups.fetch_sub(1);
    return fail(errc::store_unreachable, "too many host names are being looked up already");
  }
  auto shared = std::make_shared<lookup>();
  try {
    std::thread{[shared, host, port] {
      int error = 0;
      auto found = look_up(host, port, 0, error);
      lookups.fetch_sub(1);
      const std::lock_guard guard{shared->m};
      shared->found = std::move(found);
      shared->failed = error;
      shared->done = true;
      shared->answered.notify_one();
    }}.detach();
  } catch (const std::system_error&) {
    lookups.fetch_sub(1);
    return fail(errc::overloaded, "no thread could be started to look up a host name");
  }
  std::unique_lock lock{shared->m};
  while (!shared->done) {
    const auto current = now();
    if (current >= until) {
      return fail(errc::store_unreachable,
                  "looking up \"" + escape(host) + "\" took too long: check the name service");
    }
    shared->answered.wait_for(lock, until - current);
  }
  if (!shared->found) {
    return fail(errc::store_unreachable, "host \"" + escape(host) + "\" cannot be looked up: " +
                                             ::gai_strerror(shared->failed));
  }
  return std::move(shared->found);
}

result<unique_fd> connect_to(const sockaddr* address, socklen_t size, core::time_point until) {
  unique_fd fd{::socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)};
  if (!fd) return fail(errc::store_unreachable, describe_io_error(errno));
  for (;;) {
    if (::connect(fd.get(), address, size) == 0) return fd;
    if (errno == EINTR) continue;
    // A unix socket whose backlog is full says EAGAIN and cannot be polled for: look again soon.
    if (errno == EAGAIN && address->sa_family == AF_UNIX) {
      if (now() >= until) return fail(errc::store_unreachable, "the server accepts no connection");
      constexpr timespec moment{0, 1'000'000};
      ::nanosleep(&moment, nullptr);
      continue;
    }
    break;
  }
  if (errno != EINPROGRESS) return fail(errc::store_unreachable, describe_io_error(errno));
  if (wait_ready(fd.get(), POLLOUT, until) != readiness::ready) {
    return fail(errc::store_unreachable, "no answer to the connection attempt");
  }
  int error = 0;
  socklen_t length = sizeof error;
  if (::getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &length) != 0) error = errno;
  if (error != 0) return fail(errc::store_unreachable, describe_io_error(error));
  return fd;
}

// A peer that is gone without a word is noticed after ten seconds, not after the two hours that are
// the system's default: also on connections where nothing is sent, as those of inboxes.
void notice_silence(int fd) {
  const int on = 1, idle_s = 5, pause_s = 1, probes = 5, unacknowledged_ms = 10'000;
  ::setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  ::setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof idle_s);
  ::setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &pause_s, sizeof pause_s);
  ::setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
  ::setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &unacknowledged_ms, sizeof unacknowledged_ms);
}

}  // namespace

result<unique_fd> connect_tcp(const std::string& host, std::uint16_t port, core::time_point until) {
  auto addresses = resolve(host, port, until);
  if (!addresses) return fail(std::move(addresses.error()));
  result<unique_fd> last = fail(errc::store_unreachable, "the host has no address");
  for (const addrinfo* one = addresses->get(); one != nullptr; one = one->ai_next) {
    last = connect_to(one->ai_addr, one->ai_addrlen, until);
    if (!last) continue;
    const int on = 1;
    // Requests are small and each is waited for: Nagle's delay would be all of the latency.
    ::setsockopt(last->get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    notice_silence(last->get());
    return last;
  }
  return last;
}

result<unique_fd> connect_unix(const std::string& path, core::time_point until) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) {
    return fail(errc::invalid_argument, "the socket's path is longer than the " +
                                            std::to_string(sizeof address.sun_path - 1) +
                                            " bytes that Linux allows");
  }
  std::memcpy(static_cast<void*>(address.sun_path), path.data(), path.size());
  // sockaddr_un is passed as sockaddr by design of the sockets API.
  return connect_to(reinterpret_cast<const sockaddr*>(&address), sizeof address, until);
}

readiness wait_ready(int fd, short events, core::time_point until, int wake_fd) noexcept {
  std::array<pollfd, 2> watched{{{fd, events, 0}, {wake_fd, POLLIN, 0}}};
  const nfds_t count = wake_fd >= 0 ? 2 : 1;
  for (;;) {
    const timespec left = runtime::until(until);
    const int got = ::ppoll(watched.data(), count, &left, nullptr);
    if (got > 0) return watched[0].revents != 0 ? readiness::ready : readiness::woken;
    if (got < 0 && errno != EINTR) return readiness::ready;  // let the next read say what is wrong
    if (now() >= until) return readiness::timed_out;
  }
}

io_outcome send_some(int fd, std::string_view bytes) noexcept {
  for (;;) {
    const ssize_t sent = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent >= 0) return {static_cast<std::size_t>(sent), false, 0};
    if (errno == EINTR) continue;
    if (errno == EAGAIN || errno == EWOULDBLOCK) return {0, true, 0};
    return {0, false, errno};
  }
}

io_outcome receive_some(int fd, char* into, std::size_t room) noexcept {
  for (;;) {
    const ssize_t got = ::recv(fd, into, room, MSG_DONTWAIT);
    if (got > 0) return {static_cast<std::size_t>(got), false, 0};
    if (got == 0) return {0, false, -1};
    if (errno == EINTR) continue;
    if (errno == EAGAIN || errno == EWOULDBLOCK) return {0, true, 0};
    return {0, false, errno};
  }
}

std::string describe_io_error(int error) {
  if (error == -1) return "the server closed the connection";
  return std::generic_category().message(error);
}

}  // namespace holdfast::runtime
