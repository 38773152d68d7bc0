// Scenario 21 on a majority: the wall clocks by which nodes expire keys are set.
#include <csignal>

#include <gtest/gtest.h>

#include <holdfast/holdfast.hpp>

#include "support/holder_process.hpp"
#include "support/naive_redlock.hpp"
#include "support/redlock_nodes.hpp"
#include "support/stepped_clock.hpp"
#include "support/watch.hpp"

using namespace std::chrono_literals;

namespace holdfast::test {

class RedlockClocks : public testing::Test {
 protected:
  stepped_clock clock;
  redlock_nodes set{3, {.node = clock.on()}};
};

TEST_F(RedlockClocks, JumpForwardGivesANaiveLockTwoHoldersWhoDoNotHearOfIt) {
  naive_redlock naive{set.where(), "orders"};
  ASSERT_TRUE(naive.lock(60s));
  clock.step_wall_clock(61s);
  EXPECT_TRUE(naive.lock(60s));
  EXPECT_TRUE(naive.renew(60s)) << "the first is told that it goes on";
}

// No lock can keep this from happening; but it is told, and tokens stay in order.
TEST_F(RedlockClocks, JumpForwardOfAllIsALossThatTheHolderHearsOf) {
  const auto seen = std::make_shared<recorder>();
  client a{set.url(), {.lock = {.ttl = 3'000ms}, .observer = seen}};
  client b{set.url(), {.lock = {.ttl = 60'000ms}}};
  lease old = a.mutex("orders").acquire();
  watched_token lost{old.lost()};
  ASSERT_TRUE(set.await_all_holding("orders"));
  ASSERT_TRUE(seen->await(event::kind::renewed));
  clock.step_wall_clock(4s);
  const auto next = b.mutex("orders").try_acquire(patience);
  ASSERT_TRUE(next);
  EXPECT_GT(next->token(), old.token());
  ASSERT_TRUE(lost.wait());
  // By whether it asked before the next one came, or after.
  EXPECT_TRUE(old.why_lost() == loss::taken || old.why_lost() == loss::deleted);
  EXPECT_TRUE(seen->await(event::kind::clock_stepped)) << "the alarm";
}

TEST_F(RedlockClocks, JumpBackStrandsADeadHoldersLockButWaitsAreBounded) {
  holder_process dead{set.url(), "orders", 2'000ms};
  ASSERT_TRUE(set.await_all_holding("orders"));
  dead.child().signal(SIGKILL);
  ASSERT_TRUE(dead.child().wait_exit());
  clock.step_wall_clock(-1h);
  client c{set.url(), {.lock = {.ttl = 60'000ms}}};
  EXPECT_FALSE(c.mutex("orders").try_acquire(3s));
  const lock_status status = c.status("orders");
  EXPECT_GT(status.remaining.value(), 50min) << "a person can see it";
  c.break_lock("orders", status.holder.value().token);
  const auto next = c.mutex("orders").try_acquire(patience);
  ASSERT_TRUE(next);
  EXPECT_GT(next->token(), dead.token()) << "though clocks are an hour behind that token";
}

}  // namespace holdfast::test
