// Renewing a permit of Redisson's semaphore is a ZADD, which a server short of memory refuses: all
// permits of its users were lost, though what renews takes no memory.
#include <gtest/gtest.h>

#include "support/proxied_redis.hpp"

using namespace std::chrono_literals;

namespace holdfast::test {

using PermitRenewal = proxied_redis;

TEST_F(PermitRenewal, NeedsNoMemory) {
  client c = direct({.lock = {.ttl = 60s}});
  redisson::rpermit_expirable_semaphore slots{c, "slots", 2};
  auto held = slots.acquire();
  ASSERT_EQ(server.command({"CONFIG", "SET", "maxmemory", "1"}), "OK");
  EXPECT_EQ(thrown_by([&] { (void)slots.try_acquire(); }), errc::out_of_memory);
  std::this_thread::sleep_for(5ms);  // so that there is something to extend
  const auto renewed = held.renew();
  EXPECT_TRUE(renewed) << renewed.error().message;
  EXPECT_TRUE(held.release());
  EXPECT_EQ(server.command({"GET", "slots"}), "2");
}

}  // namespace holdfast::test
