// Scenarios H, 2, 4, 7 and 21: time that passes when it should not, on either side.
#include <csignal>
#include <thread>

#include <gmock/gmock.h>

#include "support/holder_process.hpp"
#include "support/proxied_redis.hpp"
#include "support/stepped_clock.hpp"

using namespace std::chrono_literals;

namespace holdfast::test {

class Pauses : public proxied_redis {};

// H: a grant that has expired on arrival is given back and is no grant.
TEST_F(Pauses, GrantThatArrivesAfterItsDeadlineIsNotBelieved) {
  client c =
      through_proxy({.lock = {.ttl = 1500ms}, .operation_timeout = 20s, .release_budget = 20s});
  proxy.delay_replies(2s);
  EXPECT_FALSE(c.mutex("orders").try_acquire());
  proxy.delay_replies(0ms);
  EXPECT_TRUE(eventually([&] { return !exists("orders"); }));
}

// 2: stopped with the grant's reply in the kernel's buffer, for longer than the TTL.
TEST_F(Pauses, HolderStoppedBeforeItReadsItsGrantDoesNotBelieveIt) {
  proxy.inject(fault::hold_reply, asks);
  holder_process late{proxy.url(), "orders", 1'500ms, holder_process::environment{}};
  ASSERT_TRUE(proxy.await_faults(1));
  ASSERT_TRUE(eventually([&] { return exists("orders"); }));
  late.child().signal(SIGSTOP);
  proxy.let_go();

  client c = direct({.lock = {.ttl = 60s}});
  auto held = c.mutex("orders").try_acquire(patience);
  ASSERT_TRUE(held) << "the grant that nobody read has expired";
  late.child().signal(SIGCONT);
  ASSERT_TRUE(proxy.await_request(asks, 2)) << "it has to ask again";
  EXPECT_EQ(late.said("held"), "");
  EXPECT_TRUE(held->renew());

  ASSERT_TRUE(held->release());
  late.await_held();
  EXPECT_GT(late.token(), held->token());
}

// 4: the host sleeps for longer than the TTL. CLOCK_MONOTONIC does not see it.
TEST_F(Pauses, SuspendPastTheDeadlineIsALoss) {
  stepped_clock clocks;
  holder_process sleeper{server.url(), "orders", 20s, clocks.environment()};
  sleeper.await_held();
  sleeper.tell("query");
  EXPECT_TRUE(sleeper.hear("query").starts_with("query held"));
  clocks.suspend(25s);
  sleeper.tell("renew");
  EXPECT_TRUE(sleeper.hear("renew").starts_with("renew lease_lost"));
  const std::string expired = "lost " + std::string{to_string(loss::expired)};
  EXPECT_TRUE(sleeper.hear("lost").starts_with(expired));
}

// 7: the holder's wall clock steps: nothing happens.
TEST_F(Pauses, WallClockStepAtTheHolderChangesNothing) {
  stepped_clock clocks;
  holder_process holder{server.url(), "orders", 2'100ms, clocks.environment()};
  holder.await_held();
  clocks.step_wall_clock(24h);
  EXPECT_FALSE(direct().mutex("orders").try_acquire(3s)) << "renewed as before";
  clocks.step_wall_clock(-48h);
  EXPECT_FALSE(direct().mutex("orders").try_acquire(3s));
  holder.tell("query");
  EXPECT_TRUE(holder.hear("query").starts_with("query held"));
  EXPECT_EQ(holder.said("lost"), "");
  holder.child().close_stdin();
  EXPECT_EQ(holder.child().wait_exit(), (exit_status{false, 0}));
  EXPECT_TRUE(direct().mutex("orders").try_acquire(patience));
}

// 21: the wall clock by which the server expires keys.
class ServerClock : public testing::Test {
 protected:
  stepped_clock clock;
  redis_server server{clock.on()};
};

TEST_F(ServerClock, JumpForwardEndsALeaseAndItsHolderHearsOfIt) {
  const auto seen = std::make_shared<recorder>();
  client a{server.url(), {.lock = {.ttl = 3s}, .observer = seen}};
  client b{server.url(), {.lock = {.ttl = 60s}}};
  lease old = a.mutex("orders").acquire();
  watched_token lost{old.lost()};
  ASSERT_TRUE(eventually([&] { return a.counters().renewals > 0; }));
  clock.step_wall_clock(4s);
  const auto next = b.mutex("orders").try_acquire();
  ASSERT_TRUE(next) << "the server let go early";
  EXPECT_GT(next->token(), old.token()) << "which is what tokens are for";
  ASSERT_TRUE(lost.wait());
  // The server tells of a key that it lets go: the holder may ask before another has the lock.
  EXPECT_THAT(old.why_lost(), testing::AnyOf(loss::deleted, loss::taken));
  EXPECT_TRUE(seen->await(event::kind::clock_stepped));
  EXPECT_GE(a.counters().clock_steps, 1U);
}

TEST_F(ServerClock, JumpBackLeavesALivingHoldersLockAsItWas) {
  const auto seen = std::make_shared<recorder>();
  client a{server.url(), {.lock = {.ttl = 3s}, .observer = seen}};
  lease held = a.mutex("orders").acquire();
  ASSERT_TRUE(eventually([&] { return a.counters().renewals > 0; }));
  clock.step_wall_clock(-1h);
  EXPECT_TRUE(seen->await(event::kind::clock_stepped)) << "the alarm";
  EXPECT_TRUE(held.held());
  ASSERT_TRUE(held.release());
  EXPECT_EQ(server.command({"EXISTS", "orders"}), "0");
}

TEST_F(ServerClock, JumpBackStrandsADeadHoldersLockButWaitsAreBounded) {
  holder_process dead{server.url(), "orders", 2s};
  dead.child().signal(SIGKILL);
  ASSERT_TRUE(dead.child().wait_exit());
  clock.step_wall_clock(-1h);
  client c{server.url(), {.lock = {.ttl = 60s}}};
  EXPECT_FALSE(c.mutex("orders").try_acquire(3s));
  const lock_status status = c.status("orders");
  EXPECT_GT(status.remaining.value(), 50min) << "a person can see it";
  c.break_lock("orders", status.holder.value().token);
  const auto next = c.mutex("orders").try_acquire();
  ASSERT_TRUE(next);
  EXPECT_GT(next->token(), dead.token()) << "though the clock is an hour behind that token";
}

TEST_F(ServerClock, TokensIncreaseWhenItJumpsBack) {
  client c{server.url()};
  fencing_token last{0};
  for (int i = 0; i < 5; ++i) {
    lease held = c.mutex("orders").acquire();
    EXPECT_GT(held.token(), last);
    last = held.token();
    ASSERT_TRUE(held.release());
    clock.step_wall_clock(i % 2 == 0 ? -10min : 5min);
  }
}

}  // namespace holdfast::test
