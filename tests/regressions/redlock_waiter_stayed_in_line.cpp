// A waiter that was granted the lock by a majority at once, while another node had put it in line,
// never left that line; nor did one whose attempt failed. For a minute, every release on that node
// kept the lock for somebody who was not there. Found by the simulator.
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
  lease held = c.mutex("orders").acquire();
  ASSERT_TRUE(eventually([&] { return set[2].command({"EXISTS", line}) == "1"; }));
  EXPECT_TRUE(held.release());
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
