// Access rules that refuse PUBLISH made a release fail half-way: the lock stayed until its TTL.
#include <future>

#include "integration/queue_fixture.hpp"

using namespace std::chrono_literals;

namespace holdfast::test {

class RefusedPublish : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(
        server.command({"ACL", "SETUSER", "mute", "on", ">secret", "~*", "+@all", "resetchannels"}),
        "OK");
  }
  [[nodiscard]] client mute(client_options options = {}) const {
    return client{"redis://mute:secret@127.0.0.1:" + std::to_string(server.port()),
                  std::move(options)};
  }

  redis_server server{{.tcp = true}};
  const stores::redis::lock_keys keys{"orders"};
};

TEST_F(RefusedPublish, WaiterGetsTheLockByAsking) {
  client c = mute({.lock = {.ttl = 600s}});
  client waits{server.url(), {.lock = {.ttl = 8s}}};
  for (int i = 0; i < 2; ++i) {
    lease held = c.mutex("orders").acquire();
    auto got =
        std::async(std::launch::async, [&] { return waits.mutex("orders").try_acquire(patience); });
    ASSERT_TRUE(eventually([&] { return server.command({"LLEN", keys.queue}) == "1"; }));
    EXPECT_TRUE(held.release());
    EXPECT_TRUE(got.get());
  }
}

// The waiter is put back into the queue, which may be made anew with that.
TEST_F(RefusedPublish, QueueStillEndsWhenItsWaitersAreGone) {
  client c = mute({.lock = {.ttl = 600s}});
  client waits{server.url(), {.lock = {.ttl = 600s}}};  // asks again in half a minute
  lease held = c.mutex("orders").acquire();
  auto got =
      std::async(std::launch::async, [&] { return waits.mutex("orders").try_acquire(patience); });
  ASSERT_TRUE(eventually([&] { return server.command({"LLEN", keys.queue}) == "1"; }));
  EXPECT_TRUE(held.release());
  if (server.command({"LLEN", keys.queue}) == "1") {
    EXPECT_GT(std::stoll(server.command({"PTTL", keys.queue})), 0);
    EXPECT_GT(std::stoll(server.command({"PTTL", keys.waiters})), 0);
  }
  waits.stop();
  (void)got.get();
}

TEST_F(RefusedPublish, ClientsWithoutItTakeTurns) {
  client a = mute();
  client b = mute();
  for (int i = 0; i < 3; ++i) {
    lease held = a.mutex("orders").acquire();
    auto got = std::async(std::launch::async,
                          [&] { return b.mutex("orders").try_acquire(patience).has_value(); });
    ASSERT_TRUE(eventually([&] { return b.counters().waiting_now == 1; }));
    EXPECT_TRUE(held.release());
    EXPECT_TRUE(got.get());
  }
}

}  // namespace holdfast::test
