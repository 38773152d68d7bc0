// A connection on which the server did not answer SUBSCRIBE in time was kept for all waiters of
// Redisson's locks: each of them waited for an answer as long as it may, with every ask, instead of
// hearing of a release.
#include <future>

#include "support/proxied_redis.hpp"

using namespace std::chrono_literals;

namespace holdfast::test {

using SilentSubscription = proxied_redis;

TEST_F(SilentSubscription, IsReplacedByAnother) {
  const std::string channel = "redisson_lock__channel:{orders}";
  client holder = direct();
  client waiter = through_proxy({.operation_timeout = 400ms});
  redisson::rlock held{holder, "orders"};
  auto first = held.acquire();
  proxy.inject(fault::hold_request, "SUBSCRIBE");
  auto waits = std::async(std::launch::async, [&] {
    return redisson::rlock{waiter, "orders"}.try_acquire(patience).has_value();
  });
  ASSERT_TRUE(proxy.await_faults(1));
  EXPECT_TRUE(eventually([&] {
    return server.command({"PUBSUB", "NUMSUB", channel}) == channel + "\n1";
  }));
  EXPECT_TRUE(first.release());
  EXPECT_TRUE(waits.get());
}

}  // namespace holdfast::test
