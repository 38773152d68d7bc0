// With foreign=share a release counted hand-overs before it took the lock away: short of memory the
// server refused the count, and with it the release. And the moment for which a lock is kept free
// was as long as the server's clock was set back.
#include <future>

#include "stores/redis/layout.hpp"
#include "support/proxied_redis.hpp"

using namespace std::chrono_literals;

namespace holdfast::test {

class Sharing : public proxied_redis {
 protected:
  const stores::redis::lock_keys keys{"orders"};
};

TEST_F(Sharing, ReleaseWorksWhenMemoryIsShort) {
  client c{server.url() + "?foreign=share", {.lock = {.ttl = 600s}}};
  client waits = direct({.lock = {.ttl = 600s}});
  lease held = c.mutex("orders").acquire();
  auto got =
      std::async(std::launch::async, [&] { return waits.mutex("orders").try_acquire(patience); });
  ASSERT_TRUE(eventually([&] { return server.command({"LLEN", keys.queue}) == "1"; }));
  ASSERT_EQ(server.command({"CONFIG", "SET", "maxmemory", "1"}), "OK");
  EXPECT_TRUE(held.release());
  EXPECT_TRUE(got.get());
  ASSERT_EQ(server.command({"CONFIG", "SET", "maxmemory", "0"}), "OK");
}

// Also the one that leaves the lock free, and writes until when.
TEST_F(Sharing, RoomIsLeftWhenMemoryIsShort) {
  client c{server.url() + "?foreign=share", {.lock = {.ttl = 600s}}};
  client waits = direct({.lock = {.ttl = 600s}});
  lease held = c.mutex("orders").acquire();
  auto got =
      std::async(std::launch::async, [&] { return waits.mutex("orders").try_acquire(patience); });
  ASSERT_TRUE(eventually([&] { return server.command({"LLEN", keys.queue}) == "1"; }));
  ASSERT_EQ(server.command({"HSET", keys.waiters, "hands", "1000"}), "1");
  ASSERT_EQ(server.command({"CONFIG", "SET", "maxmemory", "1"}), "OK");
  EXPECT_TRUE(held.release());
  ASSERT_EQ(server.command({"CONFIG", "SET", "maxmemory", "0"}), "OK");
  EXPECT_TRUE(got.get());
}

TEST_F(Sharing, ClockThatWasSetBackDoesNotKeepTheLockFree) {
  const auto time = server.command({"TIME"});
  const auto now = std::stoll(time.substr(0, time.find('\n'))) * 1000;
  client waits = direct();
  ASSERT_EQ(server.command({"SET", "orders", "foreign"}), "OK");
  auto got =
      std::async(std::launch::async, [&] { return waits.mutex("orders").try_acquire(patience); });
  ASSERT_TRUE(eventually([&] { return server.command({"LLEN", keys.queue}) == "1"; }));
  // Written an hour ago, by a clock that was an hour ahead of now.
  static_cast<void>(server.command({"HSET", keys.waiters, "room", std::to_string(now + 3600000)}));
  ASSERT_EQ(server.command({"DEL", "orders"}), "1");
  EXPECT_TRUE(got.get());
}

}  // namespace holdfast::test
