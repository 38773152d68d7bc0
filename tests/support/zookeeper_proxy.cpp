#include "support/zookeeper_proxy.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>
#include <utility>
#include <vector>

#include "support/raw_redis.hpp"

namespace holdfast::test {

namespace {

// A packet is its length in four bytes, big-endian, and that many more. Empty: not whole yet.
std::string whole_packet(std::string& from) {
  constexpr std::size_t head = 4;
  if (from.size() < head) return {};
  std::size_t length = 0;
  for (std::size_t i = 0; i < head; ++i)
    length = length * 256 + static_cast<unsigned char>(from[i]);
  if (from.size() < head + length) return {};
  auto packet = from.substr(0, head + length);
  from.erase(0, head + length);
  return packet;
}

// What a request and its reply both begin with, after the first of a connection.
std::string xid_of(const std::string& packet) { return packet.substr(4, 4); }

void send_all(int fd, const std::string& bytes) {
  for (std::size_t sent = 0; sent < bytes.size();) {
    const ssize_t got = ::send(fd, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return;  // seen when it is read from
    sent += static_cast<std::size_t>(got);
  }
}

}  // namespace

zookeeper_proxy::zookeeper_proxy(std::uint16_t server)
    : server_{server},
      listener_{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)},
      wake_{::eventfd(0, EFD_CLOEXEC)} {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  if (::bind(listener_, generic, size) != 0 || ::listen(listener_, 64) != 0 ||
      ::getsockname(listener_, generic, &size) != 0) {
    throw std::system_error{errno, std::generic_category(), "zookeeper_proxy"};
  }
  port_ = ntohs(address.sin_port);
  thread_ = std::thread{[this] { run(); }};
}

zookeeper_proxy::~zookeeper_proxy() {
  {
    const std::lock_guard guard{m_};
    stopping_ = true;
  }
  wake();
  thread_.join();
  for (auto& one : links_)
    drop(one);
  ::close(listener_);
  ::close(wake_);
}

void zookeeper_proxy::wake() const {
  const std::uint64_t one = 1;
  static_cast<void>(::write(wake_, &one, sizeof one));
}

void zookeeper_proxy::lose_reply_to(std::string matching) {
  const std::lock_guard guard{m_};
  losing_ = std::move(matching);
}

std::size_t zookeeper_proxy::lost() const {
  const std::lock_guard guard{m_};
  return lost_;
}

void zookeeper_proxy::cut_all() {
  {
    const std::lock_guard guard{m_};
    for (auto& one : links_)
      drop(one);
  }
  wake();
}

void zookeeper_proxy::stall(bool on) {
  {
    const std::lock_guard guard{m_};
    stalled_ = on;
  }
  wake();
}

std::size_t zookeeper_proxy::seen(const std::string& matching) const {
  const std::lock_guard guard{m_};
  return static_cast<std::size_t>(std::count_if(log_.begin(), log_.end(), [&](const auto& packet) {
    return packet.find(matching) != std::string::npos;
  }));
}

void zookeeper_proxy::drop(link& on) {
  for (int* fd : {&on.client, &on.server}) {
    if (*fd >= 0) ::close(std::exchange(*fd, -1));
  }
}

void zookeeper_proxy::run() {
  std::unique_lock lock{m_};
  while (!stopping_) {
    std::vector<pollfd> waits{{wake_, POLLIN, 0}, {listener_, POLLIN, 0}};
    std::erase_if(links_, [](const link& one) { return one.client < 0; });
    for (const auto& one : links_) {
      if (stalled_) continue;
      waits.push_back({one.client, POLLIN, 0});
      waits.push_back({one.server, POLLIN, 0});
    }
    lock.unlock();
    static_cast<void>(::poll(waits.data(), waits.size(), -1));
    lock.lock();
    if (waits[0].revents != 0) {
      std::uint64_t woken = 0;
      static_cast<void>(::read(wake_, &woken, sizeof woken));
    }
    if (waits[1].revents != 0) accept_one();
    const auto ready = [&](int fd) {
      return std::any_of(waits.begin() + 2, waits.end(),
                         [&](const pollfd& one) { return one.fd == fd && one.revents != 0; });
    };
    for (auto& one : links_) {
      if (stalled_) break;
      if (one.client >= 0 && ready(one.client)) take(one, true);
      if (one.server >= 0 && ready(one.server)) take(one, false);
    }
  }
}

void zookeeper_proxy::accept_one() {
  const int client = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
  if (client < 0) return;
  try {
    links_.push_back({.client = client, .server = connect_to({{}, server_})});
  } catch (const std::system_error&) {
    ::close(client);
  }
}

void zookeeper_proxy::take(link& on, bool from_client) {
  std::array<char, 65536> buffer;
  const ssize_t got =
      ::recv(from_client ? on.client : on.server, buffer.data(), buffer.size(), MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0) return drop(on);
  auto& pending = from_client ? on.requests : on.replies;
  pending.append(buffer.data(), static_cast<std::size_t>(got));
  while (on.client >= 0) {
    const auto packet = whole_packet(pending);
    if (packet.empty()) return;
    pass(on, packet, from_client);
  }
}

void zookeeper_proxy::pass(link& on, const std::string& packet, bool from_client) {
  if (from_client) {
    if (std::exchange(on.greeted_by_client, true)) {
      log_.push_back(packet);
      if (!losing_.empty() && packet.find(losing_) != std::string::npos) {
        losing_.clear();
        on.awaited.insert(xid_of(packet));
      }
    }
    return send_all(on.server, packet);
  }
  if (std::exchange(on.greeted_by_server, true) && on.awaited.contains(xid_of(packet))) {
    ++lost_;
    return drop(on);
  }
  send_all(on.client, packet);
}

}  // namespace holdfast::test
