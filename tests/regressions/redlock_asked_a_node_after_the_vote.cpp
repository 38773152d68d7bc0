// A vote was over, and given back, while the connection to one node was still being made. When that
// was there at last, the node was asked all the same, and had the lock for nobody until the release
// behind that came. Found by the simulator.
#include <gtest/gtest.h>

#include "redlock_scripts.hpp"
#include "support/open_client.hpp"
#include "support/proxied_redlock.hpp"

namespace holdfast::test {

TEST(RedlockVote, IsNotAskedForWhenItIsOver) {
  proxied_redlock set{3};
  client holder = set.warm_client();
  const lease held = holder.mutex("orders").acquire();
  ASSERT_TRUE(set.servers.await_all_holding("orders"));
  set[2].stall_replies(true);
  set[2].forget();
  client late{set.url(), {.lock = {.label = "late"}}};
  EXPECT_FALSE(late.mutex("orders").try_acquire());
  set[2].stall_replies(false);
  ASSERT_TRUE(set[2].await_request(std::string{stores::redlock::scripts::release.sha1}));
  EXPECT_EQ(set[2].seen("label=late"), 0U);
}

}  // namespace holdfast::test
