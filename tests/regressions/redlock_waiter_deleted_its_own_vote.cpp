// A node voted for a waiter, and its answer was lost with the connection. The waiter was granted by
// the others and left that node's queue, by a release that named its own attempt: it deleted a vote
// that renewals counted, and a lease was lost while it was held. Found by the simulator, seed
// 2079181190.
#include "support/proxied_redlock.hpp"

using namespace std::chrono_literals;

namespace holdfast::test {

TEST(RedlockWaiter, LeavesTheQueueOfANodeAndKeepsItsVote) {
  proxied_redlock set{3};
  client c = set.warm_client();
  set[2].inject(fault::cut_before_reply, "\r\norders\r\n");
  lease held = c.mutex("orders").acquire();
  ASSERT_TRUE(set[2].await_faults(1));
  const auto& node = set.servers[2];
  ASSERT_TRUE(eventually([&] { return node.calls_of("zrem") > 0; })) << "it leaves the queue";
  EXPECT_EQ(node.command({"EXISTS", "orders"}), "1");
  ASSERT_TRUE(held.release());
  EXPECT_TRUE(set.servers.await_none_holding("orders"));
}

}  // namespace holdfast::test
