// Waiting on a quorum: a node that is given back tells the first in its queue, and keeps the lock
// for it for a moment.
#include <future>

#include <gtest/gtest.h>

#include <holdfast/holdfast.hpp>

#include "redlock_scripts.hpp"
#include "support/holder_process.hpp"
#include "support/raw_redis.hpp"
#include "support/redlock_nodes.hpp"
#include "support/watch.hpp"

using namespace std::chrono_literals;

namespace holdfast::test {

namespace {

const std::string queue = "holdfast:{redlock}:waiters:orders";
const std::string somebody(32, 'a');

class RedlockWaiting : public ::testing::Test {
 protected:
  [[nodiscard]] bool are_queued(std::size_t waiters, std::size_t least_nodes = 2) {
    return eventually([&] {
      std::size_t nodes = 0;
      for (std::size_t i = 0; i < set_.size(); ++i)
        nodes += set_[i].command({"ZCARD", queue}) == std::to_string(waiters) ? 1 : 0;
      return nodes >= least_nodes;
    });
  }
  // As if another attempt had been granted the lock there.
  void take(std::size_t node) {
    (void)set_[node].command(
        {"SET", "orders", somebody + ";holdfast=1;token=1;block=1;since=0;", "PX", "60000"});
  }
  // And gave it back: the shipped script.
  std::string give_back(std::size_t node, const std::string& leaves_as = {},
                        const std::string& turn_ms = "50") {
    return set_[node].command({"EVAL", std::string{stores::redlock::scripts::release.source}, "2",
                               "orders", queue, somebody, leaves_as, turn_ms, "run_id"});
  }
  std::string value(std::size_t node) { return set_[node].command({"GET", "orders"}); }

  void acquire_once() {
    lease first = other_.mutex("orders").acquire();
    EXPECT_TRUE(set_.await_all_holding("orders"));
    EXPECT_TRUE(first.release());
    EXPECT_TRUE(set_.await_none_holding("orders"));
  }
  std::future<lease> waiter() {
    return std::async(std::launch::async, [this] { return waits_.mutex("orders").acquire(); });
  }
  // One that comes to a lock that is taken everywhere.
  std::future<lease> waiter_behind_another() {
    acquire_once();
    for (std::size_t node = 0; node < set_.size(); ++node)
      take(node);
    auto next = waiter();
    EXPECT_TRUE(are_queued(1, set_.size()));
    return next;
  }
  static bool over(const std::future<lease>& one) {
    return eventually([&] { return one.wait_for(0s) == std::future_status::ready; });
  }

  redlock_nodes set_{3};
  client other_{set_.url(), {.lock = {.ttl = 60'000ms}}};
  client waits_{set_.url(), {.lock = {.ttl = 60'000ms}}};
};

}  // namespace

TEST_F(RedlockWaiting, NodeThatIsGivenBackTellsTheFirstAndKeepsTheLockForIt) {
  auto next = waiter_behind_another();
  const auto entry = set_[0].command({"ZRANGE", queue, "0", "0"});
  // Long enough for this test to look at it. A minority cannot grant.
  EXPECT_EQ(give_back(0, {}, "60000"), "1");
  EXPECT_EQ(value(0), "turn;" + entry.substr(0, 32));
  EXPECT_FALSE(other_.mutex("orders").try_acquire()) << "it is kept for another";
  const auto status = other_.status("orders");
  ASSERT_TRUE(status.holder);
  EXPECT_EQ(status.nodes[0].status, lock_on_node::state::free) << "a turn holds nothing";
  EXPECT_EQ(give_back(1, {}, "60000"), "1");
  EXPECT_TRUE(over(next)) << "it takes its turns by asking";
  lease held = next.get();
  EXPECT_TRUE(held.renew());
}

TEST_F(RedlockWaiting, TurnThatIsNotTakenLapses) {
  acquire_once();
  take(0);
  // A waiter that hears, and does not ask: its client is cut off from the other nodes.
  raw_redis deaf{set_[0].where()};
  const std::string inbox(32, 'b');
  (void)deaf.command({"SUBSCRIBE", "holdfast:turn:" + inbox});
  (void)set_[0].command({"ZADD", queue, "1", std::string(32, 'c') + inbox + "host=h;pid=1;label="});
  EXPECT_EQ(give_back(0), "1");
  lease held = other_.mutex("orders").acquire();
  EXPECT_TRUE(eventually([&] { return held.renew() && set_.holding("orders") == 3; }))
      << "a renewal repairs what was kept for another";
}

TEST_F(RedlockWaiting, ReleaseOfAMinorityIsNoGrant) {
  auto next = waiter_behind_another();
  EXPECT_EQ(give_back(0), "1");
  // It takes its turn, finds the others taken, and gives back what it took there.
  ASSERT_TRUE(eventually([&] { return set_[0].command({"EXISTS", "orders"}) == "0"; }));
  EXPECT_TRUE(are_queued(1));
  EXPECT_NE(next.wait_for(0s), std::future_status::ready);
  EXPECT_EQ(give_back(1), "1");
  EXPECT_TRUE(over(next));
  EXPECT_EQ(value(2).substr(0, somebody.size()), somebody);
}

// With one node of three dead, two waiters that have one each handed each other's node to and fro
// for as long as they waited (./dev sim --seed 510).
TEST_F(RedlockWaiting, AttemptThatWasNotGrantedHandsNoTurnOn) {
  auto next = waiter_behind_another();
  EXPECT_EQ(give_back(0, {}, "0"), "1");
  EXPECT_FALSE(value(0).starts_with("turn;")) << value(0);
  EXPECT_TRUE(are_queued(1, set_.size()));
  for (const std::size_t node : {1U, 2U})
    EXPECT_EQ(give_back(node, {}, "0"), "1");
  EXPECT_TRUE(over(next)) << "it polls";
}

TEST_F(RedlockWaiting, WaitersOfAnEvenNumberOfNodesAreAllServed) {
  set_[2].kill9();
  std::vector<std::future<int>> all;
  for (int i = 0; i < 4; ++i) {
    all.push_back(std::async(std::launch::async, [this] {
      client c{set_.url(), {.lock = {.ttl = 60'000ms}}};
      int served = 0;
      for (int turn = 0; turn < 10; ++turn)
        served += c.mutex("orders").try_acquire(patience) ? 1 : 0;
      return served;
    }));
  }
  for (auto& one : all)
    EXPECT_EQ(one.get(), 10);
}

TEST_F(RedlockWaiting, WaiterThatIsServedLeavesEveryQueue) {
  auto next = waiter_behind_another();
  EXPECT_EQ(give_back(0), "1");
  EXPECT_EQ(give_back(1), "1");
  lease held = next.get();
  EXPECT_TRUE(are_queued(0, set_.size())) << "also where the lock is still taken";
}

TEST_F(RedlockWaiting, WaiterThatGivesUpLeavesEveryQueue) {
  acquire_once();
  for (std::size_t node = 0; node < set_.size(); ++node)
    take(node);
  EXPECT_FALSE(waits_.mutex("orders").try_acquire(300ms));
  EXPECT_TRUE(are_queued(0, set_.size()));
}

// A ticket is a client's clock: one that is an hour behind is not always first.
TEST_F(RedlockWaiting, TicketCountsWithinTheLastSecondOfTheNodesClock) {
  acquire_once();
  take(0);
  auto& node = set_[0];
  const auto config = node.command({"HGET", "holdfast:{redlock}:node", "config"});
  const auto run = node.command({"HGET", "holdfast:{redlock}:node", "run"});
  const auto queue_with = [&](const std::string& ticket, char who) {
    return node.command({"EVAL",
                         std::string{stores::redlock::scripts::acquire.source},
                         "3",
                         "orders",
                         "holdfast:{redlock}:node",
                         queue,
                         config,
                         "c:1",
                         std::string(32, who),
                         "1000",
                         "1",
                         "1",
                         "0",
                         "host=h;pid=1;label=",
                         "30000000",
                         std::string(32, who) + std::string(32, '0'),
                         ticket,
                         "10000",
                         "",
                         run});
  };
  const auto before = std::stoull(node.command({"TIME"}));
  (void)queue_with("1", 'd');
  (void)queue_with("9000000000000000", 'e');
  (void)queue_with("9000000000000000", 'd');
  const auto after = std::stoull(node.command({"TIME"})) + 1;
  const auto score = [&](char who) {
    return std::stoull(node.command(
        {"ZSCORE", queue, std::string(32, who) + std::string(32, '0') + "host=h;pid=1;label="}));
  };
  EXPECT_GE(score('d'), (before - 1) * 1'000'000);
  EXPECT_LE(score('d'), after * 1'000'000 - 1'000'000) << "and is kept from its first entry";
  EXPECT_LE(score('e'), after * 1'000'000);
}

TEST_F(RedlockWaiting, WaiterThatIsPausedCostsTheOthersAMomentAndFindsOut) {
  lease held = other_.mutex("orders").acquire();
  holder_process paused{set_.url(), "orders", 2000ms, {}};
  ASSERT_TRUE(are_queued(1));
  paused.child().signal(SIGSTOP);
  auto next = waiter();
  ASSERT_TRUE(are_queued(2));
  EXPECT_TRUE(held.release());
  lease served = next.get();
  paused.child().signal(SIGCONT);
  EXPECT_TRUE(served.renew());
  const auto token = served.token();
  EXPECT_TRUE(served.release());
  paused.await_held();
  EXPECT_GT(paused.token(), token);
}

TEST_F(RedlockWaiting, WhatIsNoEntryIsPassedOver) {
  lease held = other_.mutex("orders").acquire();
  ASSERT_TRUE(set_.await_all_holding("orders"));
  for (const std::size_t node : {0, 1, 2}) {
    for (const auto& junk : {std::string{}, std::string{"junk"}, std::string(72, '9')})
      (void)set_[node].command({"ZADD", queue, "1", junk});
  }
  auto next = waiter();
  ASSERT_TRUE(are_queued(4));
  EXPECT_TRUE(held.release());
  EXPECT_TRUE(over(next));
}

TEST_F(RedlockWaiting, WaiterWhoseProcessIsGoneIsPassedOver) {
  lease held = other_.mutex("orders").acquire();
  {
    holder_process gone{set_.url(), "orders", 2000ms, {}};
    ASSERT_TRUE(are_queued(1));
  }  // killed
  auto next = waiter();
  ASSERT_TRUE(are_queued(2));
  EXPECT_TRUE(held.release());
  EXPECT_TRUE(over(next));
}

// It must not abort a release half-way, nor leave a waiter asleep.
TEST_F(RedlockWaiting, UserThatMayNotPublishReleasesAndWaitersAreServed) {
  for (std::size_t node = 0; node < set_.size(); ++node) {
    EXPECT_EQ(set_[node].command({"ACL", "SETUSER", "default", "-publish"}), "OK");
  }
  lease held = other_.mutex("orders").acquire();
  auto next = waiter();
  ASSERT_TRUE(are_queued(1));
  EXPECT_TRUE(held.release());
  EXPECT_TRUE(over(next));
}

}  // namespace holdfast::test
