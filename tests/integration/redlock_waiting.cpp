// Waiting on a quorum: nodes that are given back vote for the first in line by themselves.
#include <future>

#include <gtest/gtest.h>

#include <holdfast/holdfast.hpp>

#include "redlock_scripts.hpp"
#include "support/holder_process.hpp"
#include "support/redlock_nodes.hpp"
#include "support/watch.hpp"

using namespace std::chrono_literals;

namespace holdfast::test {

namespace {

const std::string record = "holdfast:{redlock}:node";
const std::string line = "holdfast:{redlock}:waiters:orders";
const std::string somebody(32, 'a');

class RedlockWaiting : public ::testing::Test {
 protected:
  // Who comes for the first time asks all nodes; later on, a majority of them.
  [[nodiscard]] bool are_in_line(std::size_t waiters, std::size_t least_nodes = 2) {
    return eventually([&] {
      std::size_t nodes = 0;
      for (std::size_t i = 0; i < set_.size(); ++i)
        nodes += set_[i].command({"ZCARD", line}) == std::to_string(waiters) ? 1 : 0;
      return nodes >= least_nodes;
    });
  }
  // As if somebody had been granted the lock there.
  void take(std::size_t node) {
    (void)set_[node].command(
        {"SET", "orders", somebody + ";holdfast=1;token=1;block=1;since=0;", "PX", "60000"});
  }
  // And gave it back: the shipped script.
  void give_back(std::size_t node) { EXPECT_EQ(release(node, "", ""), "1"); }
  std::string release(std::size_t node, const std::string& leaves_as, const std::string& stays_as) {
    auto& at = set_[node];
    return at.command({"EVAL", std::string{stores::redlock::scripts::release.source}, "3", "orders",
                       record, line, at.command({"HGET", record, "config"}),
                       counter_field(set_[node]), somebody, "1", "0", leaves_as, stays_as, "7",
                       at.command({"HGET", record, "run"})});
  }
  void set_counter(std::size_t node, std::uint64_t to) {
    (void)set_[node].command({"HSET", record, counter_field(set_[node]), std::to_string(to)});
  }
  std::string value(std::size_t node) { return set_[node].command({"GET", "orders"}); }

  // All nodes have a counter then.
  fencing_token acquire_once() {
    lease first = other_.mutex("orders").acquire();
    EXPECT_TRUE(set_.await_all_holding("orders"));
    const auto token = first.token();
    EXPECT_TRUE(first.release());
    EXPECT_TRUE(set_.await_none_holding("orders"));
    return token;
  }
  std::future<lease> waiter() {
    return std::async(std::launch::async, [this] { return waits_.mutex("orders").acquire(); });
  }
  // Who comes to a lock that is taken everywhere.
  std::future<lease> waiter_behind_somebody() {
    (void)acquire_once();
    for (std::size_t node = 0; node < set_.size(); ++node)
      take(node);
    auto next = waiter();
    EXPECT_TRUE(are_in_line(1, set_.size()));
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

// It may also have just asked again by itself, and then its token is another: not every time.
TEST_F(RedlockWaiting, NodesThatAreGivenBackVoteForTheFirstInLine) {
  EXPECT_TRUE(eventually([&] {
    lease held = other_.mutex("orders").acquire();
    auto next = waiter();
    EXPECT_TRUE(are_in_line(1));
    const auto token = held.token();
    EXPECT_TRUE(held.release());
    lease called = next.get();
    EXPECT_GT(called.token(), token);
    const bool by_call = called.token().value() == token.value() + 1;
    const auto status = other_.status("orders");
    EXPECT_TRUE(status.holder && status.holder->token == called.token());
    EXPECT_TRUE(called.renew());
    EXPECT_TRUE(called.release());
    return by_call;
  }));
}

TEST_F(RedlockWaiting, TokensThatDifferAreRaised) {
  lease held = other_.mutex("orders").acquire();
  ASSERT_TRUE(set_.await_all_holding("orders"));
  auto next = waiter();
  ASSERT_TRUE(are_in_line(1));
  const auto ahead = held.token().value() + 30'000'000;
  for (const std::size_t node : {0, 1, 2})
    set_counter(node, ahead + 1000 * node);
  EXPECT_TRUE(held.release());
  lease called = next.get();
  EXPECT_GT(called.token().value(), ahead + 1000) << "above those of two nodes";
  EXPECT_TRUE(called.renew());
}

// Who gave it back died half-way, or some nodes did not hear of it.
TEST_F(RedlockWaiting, VoteOfAMinorityIsNoGrant) {
  auto next = waiter_behind_somebody();
  give_back(0);
  const auto first = value(0).substr(0, somebody.size());
  EXPECT_NE(first, somebody);
  // It finds the others taken when it asks again, and gives back: its successor is called there.
  ASSERT_TRUE(eventually([&] { return value(0).substr(0, somebody.size()) != first; }));
  EXPECT_NE(next.wait_for(0s), std::future_status::ready);
  give_back(1);
  EXPECT_TRUE(over(next));
  EXPECT_EQ(value(2).substr(0, somebody.size()), somebody);
}

// The counterexample of models/redlock_renew.pml: a node where it was in line still.
TEST_F(RedlockWaiting, NodeThatVotedForItAgainSinceDoesNotCountInARenewal) {
  auto next = waiter_behind_somebody();
  for (const std::size_t node : {0, 1})
    (void)set_[node].command({"DEL", "orders"});
  lease held = next.get();
  ASSERT_TRUE(eventually([&] { return set_[2].command({"ZCARD", line}) == "1"; }));
  // Node 0 lost the key. Another one is granted the lock there and on node 2, and gives it back.
  (void)set_[0].command({"DEL", "orders"});
  const auto higher = held.token().value() + 30'000'000;
  set_counter(0, higher);
  set_counter(2, higher);
  give_back(2);
  ASSERT_NE(value(2).find(";token=" + std::to_string(higher + 1) + ";"), std::string::npos);
  EXPECT_EQ(value(2).substr(0, somebody.size()), value(1).substr(0, somebody.size()));
  EXPECT_FALSE(held.renew());
}

// A copy of the request that comes late finds no such place, and nobody by that name any more.
TEST_F(RedlockWaiting, SuccessorTakesThePlaceOfItsPredecessorOnly) {
  (void)acquire_once();
  auto& node = set_[0];
  const auto in_line = [&] { return node.command({"ZRANGE", line, "0", "-1"}); };
  EXPECT_EQ(release(0, "old", "new"), "0");
  EXPECT_EQ(in_line(), "");
  (void)node.command({"ZADD", line, "3", "old"});
  EXPECT_EQ(release(0, "old", "new"), "0");
  EXPECT_EQ(in_line(), "new");
  EXPECT_EQ(release(0, "old", "newer"), "0");
  EXPECT_EQ(in_line(), "new");
}

TEST_F(RedlockWaiting, WaiterThatIsPausedCostsTheOthersItsClaimAndFindsOut) {
  lease held = other_.mutex("orders").acquire();
  holder_process paused{set_.url(), "orders", 2000ms, {}};
  ASSERT_TRUE(are_in_line(1));
  paused.child().signal(SIGSTOP);
  auto next = waiter();
  ASSERT_TRUE(are_in_line(2));
  EXPECT_TRUE(held.release());
  lease called = next.get();
  paused.child().signal(SIGCONT);
  EXPECT_TRUE(called.renew());
  const auto token = called.token();
  EXPECT_TRUE(called.release());
  paused.await_held();
  EXPECT_GT(paused.token(), token) << "not what it was called to while it was paused";
}

TEST_F(RedlockWaiting, WhatIsNoStandingAskIsPassedOver) {
  lease held = other_.mutex("orders").acquire();
  ASSERT_TRUE(set_.await_all_holding("orders"));
  for (const std::size_t node : {0, 1, 2}) {
    for (const auto& junk : {std::string{}, std::string{"junk"}, std::string(72, '9')})
      (void)set_[node].command({"ZADD", line, "1", junk});
  }
  auto next = waiter();
  ASSERT_TRUE(are_in_line(4));
  EXPECT_TRUE(held.release());
  EXPECT_TRUE(over(next));
}

TEST_F(RedlockWaiting, WaiterWhoseProcessIsGoneIsPassedOver) {
  lease held = other_.mutex("orders").acquire();
  {
    holder_process gone{set_.url(), "orders", 2000ms, {}};
    ASSERT_TRUE(are_in_line(1));
  }  // killed
  auto next = waiter();
  ASSERT_TRUE(are_in_line(2));
  EXPECT_TRUE(held.release());
  EXPECT_TRUE(over(next));
}

}  // namespace holdfast::test
