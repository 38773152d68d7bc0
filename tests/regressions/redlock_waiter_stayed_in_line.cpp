// A waiter that was granted the lock by a majority at once, while another node had put it in its
// queue, never left that queue; nor did one whose attempt failed. For a minute, every release on
// that node kept the lock for a waiter that was not there. Found by the simulator.
#include <gtest/gtest.h>

#include <holdfast/holdfast.hpp>

#include "support/redlock_nodes.hpp"
#include "support/watch.hpp"

using namespace std::chrono_literals;

namespace holdfast::test {
namespace {

constexpr auto line = "holdfast:{redlock}:waiters:orders";

TEST(RedlockWaiter, LeavesTheLineOfANodeThatDidNotServeIt) {
  redlock_nodes set{3};
  (void)set[2].command({"SET", "orders", "foreign", "PX", "60000"});
  client c{set.url()};
  // A client queues once a majority has answered it.
  ASSERT_TRUE(c.mutex("orders").acquire().release());
  const lease held = c.mutex("orders").acquire();
  ASSERT_TRUE(eventually([&] { return set[2].calls_of("zadd") > 0; })) << "it was in that queue";
  EXPECT_TRUE(eventually([&] { return set[2].command({"EXISTS", line}) == "0"; }));
}

TEST(RedlockWaiter, LeavesTheLineWhenItsAttemptFails) {
  redlock_nodes set{3};
  (void)set[0].command({"SET", "orders", "foreign", "PX", "60000"});
  client c{set.url(), {.unreachable_limit = 300ms}};
  set[1].kill9();
  set[2].kill9();
  EXPECT_THROW((void)c.mutex("orders").acquire(), error);
  EXPECT_TRUE(eventually([&] { return set[0].command({"EXISTS", line}) == "0"; }));
}

}  // namespace
}  // namespace holdfast::test
