// A posted release that found as many requests under way as a connection takes was given up: of
// 5,000 leases destroyed at once 904 stayed until their TTL, and nobody was told.
#include "support/proxied_redis.hpp"

using namespace std::chrono_literals;

namespace holdfast::test {

class ManyLeases : public proxied_redis {};

TEST_F(ManyLeases, DestroyedTogetherAreAllGivenBack) {
  constexpr int many = 9000;
  client c = direct({.lock = {.ttl = 600s}});
  client looks = direct();
  std::vector<lease> all;
  all.reserve(many);
  for (int i = 0; i < many; ++i)
    all.push_back(c.mutex("lock/" + std::to_string(i)).acquire());
  // While the server does nothing, no reply makes room.
  server.pause();
  all.clear();
  server.resume();
  EXPECT_TRUE(eventually([&] { return looks.list("lock/*").empty(); }));
  EXPECT_EQ(c.counters().releases, static_cast<std::uint64_t>(many));
  EXPECT_EQ(c.counters().failures, 0U);
}

// What is given up after all is counted, and the observer hears of it.
TEST_F(ManyLeases, ReleaseThatIsGivenUpIsTold) {
  const auto watch = std::make_shared<recorder>();
  client c = through_proxy({.lock = {.ttl = 600s}, .release_budget = 300ms, .observer = watch});
  {
    const lease held = c.mutex("orders").acquire();
    proxy.inject(fault::answer, releases, 1000, "-BUSY Redis is busy running a script.\r\n");
  }
  ASSERT_TRUE(watch->await(event::kind::failed));
  EXPECT_EQ(watch->first(event::kind::failed)->lock, "orders");
  EXPECT_EQ(watch->first(event::kind::failed)->code, errc::store_busy);
  EXPECT_EQ(c.counters().failures, 1U);
}

// Passing: the server takes no more clients for a moment, runs a long script, cannot persist.
TEST_F(ManyLeases, ReleaseThatIsRefusedForAMomentIsTriedAgain) {
  for (const std::string said :
       {"-BUSY Redis is busy running a script.\r\n", "-MISCONF cannot persist\r\n",
        "-ERR max number of clients reached\r\n"}) {
    client c = through_proxy({.lock = {.ttl = 600s}, .release_budget = 20s});
    {
      const lease held = c.mutex("orders").acquire();
      proxy.inject(fault::answer, releases, 3, said);
    }
    EXPECT_TRUE(eventually([&] { return !exists("orders"); })) << said;
    EXPECT_EQ(c.counters().failures, 0U) << said;
  }
}

}  // namespace holdfast::test
