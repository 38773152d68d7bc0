// A peer that was gone without a word was noticed after two hours on connections where nothing is
// sent, as those of inboxes: the system's default for keep-alive.
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <gtest/gtest.h>

#include "runtime/clock.hpp"
#include "runtime/socket.hpp"
#include "support/redis_server.hpp"

namespace holdfast::test {

TEST(HalfOpenConnection, IsNoticedWithinAMinute) {
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
  EXPECT_LE(silent_s, 60);
}

}  // namespace holdfast::test
