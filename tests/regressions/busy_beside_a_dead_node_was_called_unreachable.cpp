// With one of three nodes dead, a lock that is held is decided by the first node that says so: the
// answer of the third cannot make it a majority. That third node was counted as broken, so that a
// waiter gave up with store_unreachable beside a lock that was simply taken.
#include <gtest/gtest.h>

#include <holdfast/holdfast.hpp>

#include "support/open_client.hpp"
#include "support/process.hpp"
#include "support/redlock_nodes.hpp"

using namespace std::chrono_literals;

namespace holdfast::test {

TEST(Regression, BusyBesideADeadNodeIsBusy) {
  redlock_nodes set{3};
  client a{set.url(), {.lock = {.ttl = 60'000ms}}};
  client b{set.url(), {.lock = {.ttl = 60'000ms}, .unreachable_limit = 1ms}};
  { const lease warm = b.mutex("other").acquire(); }
  lease held = a.mutex("orders").acquire();
  ASSERT_TRUE(set.await_all_holding("orders"));
  set[0].kill9();
  ASSERT_TRUE(eventually([&] { return thrown_by([&] { (void)b.status("orders"); }) == errc{}; }));
  for (int i = 0; i < 20; ++i)
    EXPECT_FALSE(b.mutex("orders").try_acquire(20ms)) << "somebody has it, and nothing else";
  ASSERT_TRUE(held.release());
  EXPECT_TRUE(b.mutex("orders").try_acquire(patience));
}

}  // namespace holdfast::test
