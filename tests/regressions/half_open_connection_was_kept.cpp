// A peer that was gone without a word was noticed after two hours on connections where nothing is
// sent, as those of inboxes: the system's default for keep-alive.
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <cstring>
#include <optional>
#include <thread>

#include <gtest/gtest.h>

#include "runtime/clock.hpp"
#include "runtime/fd.hpp"
#include "runtime/socket.hpp"
#include "support/process.hpp"
#include "support/redis_server.hpp"

namespace holdfast::test {

TEST(HalfOpenConnection, IsLookedAtWithinSeconds) {
  const redis_server server{{.tcp = true}};
  const auto fd =
      runtime::connect_tcp("127.0.0.1", server.port(), runtime::now() + std::chrono::seconds{20});
  ASSERT_TRUE(fd);
  const auto option = [&](int level, int name) {
    int value = 0;
    socklen_t size = sizeof value;
    EXPECT_EQ(::getsockopt(fd->get(), level, name, &value, &size), 0);
    return value;
  };
  EXPECT_EQ(option(SOL_SOCKET, SO_KEEPALIVE), 1);
  const int silent_s = option(IPPROTO_TCP, TCP_KEEPIDLE) +
                       option(IPPROTO_TCP, TCP_KEEPINTVL) * option(IPPROTO_TCP, TCP_KEEPCNT);
  EXPECT_LE(silent_s, 10);
}

namespace {

bool loopback_is(bool up) {
  const runtime::unique_fd any{::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)};
  ifreq request{};
  std::strncpy(request.ifr_name, "lo", sizeof request.ifr_name - 1);
  if (::ioctl(any.get(), SIOCGIFFLAGS, &request) != 0) return false;
  const auto flags = static_cast<unsigned short>(request.ifr_flags);
  request.ifr_flags = static_cast<short>(up ? flags | IFF_UP : flags & ~IFF_UP);
  return ::ioctl(any.get(), SIOCSIFFLAGS, &request) == 0;
}

// In a network of its own, which only this thread sees. Nothing: it may not have one.
std::optional<std::chrono::nanoseconds> time_until_noticed() {
  if (::unshare(CLONE_NEWNET) != 0 || !loopback_is(true)) return std::nullopt;
  const runtime::unique_fd listener{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  auto* const any = reinterpret_cast<sockaddr*>(&at);
  socklen_t size = sizeof at;
  if (::bind(listener.get(), any, size) != 0 || ::listen(listener.get(), 1) != 0 ||
      ::getsockname(listener.get(), any, &size) != 0) {
    ADD_FAILURE() << "cannot listen";
    return std::nullopt;
  }
  const auto fd = runtime::connect_tcp("127.0.0.1", ntohs(at.sin_port),
                                       runtime::now() + std::chrono::seconds{20});
  EXPECT_TRUE(fd);
  if (!fd || !loopback_is(false)) return std::nullopt;
  const auto silent_since = runtime::now();
  EXPECT_EQ(runtime::wait_ready(fd->get(), POLLIN, silent_since + patience),
            runtime::readiness::ready);
  return runtime::now() - silent_since;
}

}  // namespace

TEST(HalfOpenConnection, OfANetworkThatSwallowsEverythingIsNoticedWithinSeconds) {
  std::optional<std::chrono::nanoseconds> took;
  std::thread{[&] { took = time_until_noticed(); }}.join();
  if (!took && !HasFailure()) GTEST_SKIP() << "a network of its own needs CAP_SYS_ADMIN";
  EXPECT_LT(took.value(), std::chrono::seconds{20});  // 10 s, and a busy machine
}

}  // namespace holdfast::test
