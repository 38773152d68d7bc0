// A lease that goes from thread to thread is as old as the request that earned it. Counted from the
// moment it was handed on, it outlived the key on the server.
#include <future>

#include "support/proxied_redis.hpp"

using namespace std::chrono_literals;

namespace holdfast::test {

class HandedOnLease : public proxied_redis {};

TEST_F(HandedOnLease, EndsBeforeTheKeyOnTheServer) {
  constexpr std::chrono::milliseconds ttl = 6s;
  client c = through_proxy({.lock = {.ttl = ttl}, .operation_timeout = 20s});
  bool handed_on = false;
  // A thread that is slow to give the lease back gives it to the server: then once more.
  for (int round = 0; round < 5 && !handed_on; ++round) {
    proxy.forget();
    proxy.inject(fault::hold_request, renews, 1'000);  // a renewal would begin a new count
    lease first = c.mutex("orders").acquire();
    auto second =
        std::async(std::launch::async, [&] { return c.mutex("orders").acquire().release(); });
    ASSERT_TRUE(eventually([&] { return c.counters().waiting_now == 1; }));
    auto third = std::async(std::launch::async, [&] {
      const lease got = c.mutex("orders").acquire();
      const auto on_the_server = pttl("orders");  // first: later it would be less
      return std::pair{on_the_server, got.remaining()};
    });
    ASSERT_TRUE(eventually([&] { return c.counters().waiting_now == 2; }));
    proxy.inject(fault::hold_reply, asks);
    ASSERT_TRUE(first.release());
    ASSERT_TRUE(proxy.await_request(asks, 2));
    let_pass(ttl / 3);
    proxy.clear();
    proxy.let_go();
    EXPECT_TRUE(second.get());
    const auto [on_the_server, remaining] = third.get();
    handed_on = proxy.seen(asks) == 2;
    EXPECT_LT(remaining, on_the_server);
  }
  EXPECT_TRUE(handed_on) << "the lease never went from thread to thread: nothing was shown";
}

}  // namespace holdfast::test
