// How a waiter hears that it is its turn, apart from waiting: there it would ask again soon anyway,
// and a message that nobody heard would not be missed.
#include <array>
#include <future>

#include <gtest/gtest.h>

#include "runtime/background.hpp"
#include "runtime/clock.hpp"
#include "runtime/random.hpp"
#include "runtime/socket.hpp"
#include "stores/redlock/turn_inbox.hpp"
#include "support/process.hpp"
#include "support/redis_server.hpp"

using namespace std::chrono_literals;

namespace holdfast::test {

namespace {

using stores::redlock::node_connection;
using stores::redlock::turn_inbox;

class RedlockTurnInbox : public ::testing::Test {
 protected:
  RedlockTurnInbox() {
    heard_->open();
    EXPECT_TRUE(eventually([&] { return listens(0) && listens(1) && listens(2); }));
  }
  ~RedlockTurnInbox() override {
    heard_->close();
    unopened_->close();
    for (auto& one : waiting_)
      one.wait();
    for (const auto& one : connections_)
      one->close();
    connecting_->stop();
  }

  using waiter = turn_inbox::waiter;
  static waiter unknown() {
    return std::make_shared<stores::redlock::queued_waiter>(runtime::fresh_owner(), "", "", "");
  }
  waiter newcomer() {
    auto fresh = unknown();
    heard_->expect(fresh);
    return fresh;
  }
  // Longer than any test may take.
  std::shared_future<void> wait(const waiter& who, std::size_t nodes) {
    return wait_at(*heard_, who, nodes);
  }
  std::shared_future<void> wait_at(turn_inbox& inbox, const waiter& who, std::size_t nodes) {
    waiting_.emplace_back(std::async(std::launch::async, [&inbox, who, nodes] {
      stores::blocking_caller here;
      inbox.wait(who, nodes, core::after(runtime::now(), 10min), here, [] {});
      here.run();
    }));
    return waiting_.back();
  }
  void tell(const waiter& who, std::size_t node) { publish(node, std::string{who->id.text()}); }
  void publish(std::size_t node, const std::string& message) {
    const auto channel = "holdfast:turn:" + std::string{heard_->inbox()};
    EXPECT_EQ(servers_[node].command({"PUBLISH", channel, message}), "1");
  }
  static bool over(const std::shared_future<void>& one) {
    return eventually([&] { return one.wait_for(0s) == std::future_status::ready; });
  }

  std::array<redis_server, 3> servers_;

 private:
  bool listens(std::size_t node) {
    return servers_[node].command({"PUBSUB", "CHANNELS", "holdfast:turn:*"}).find("turn") !=
           std::string::npos;
  }
  std::vector<std::shared_ptr<node_connection>> connections() {
    for (const auto& server : servers_) {
      stores::redis::endpoint where;
      where.node = "node";
      where.connect = [path = server.socket_path()](core::time_point until) {
        return runtime::connect_unix(path, until);
      };
      connections_.push_back(std::make_shared<node_connection>(
          stores::redis::make_dialer(where), 500ms, connecting_, node_connection::hooks{}));
    }
    return connections_;
  }

  std::shared_ptr<runtime::background> connecting_ = std::make_shared<runtime::background>(3);
  std::vector<std::shared_ptr<node_connection>> connections_;
  std::vector<std::shared_future<void>> waiting_;

 protected:
  const std::shared_ptr<turn_inbox> heard_ =
      std::make_shared<turn_inbox>(connections(), connecting_);
  const std::shared_ptr<turn_inbox> unopened_ =
      std::make_shared<turn_inbox>(connections_, connecting_);
};

}  // namespace

TEST_F(RedlockTurnInbox, WakesTheWaiterWhoseTurnItIsOnAsManyNodesAsItWants) {
  const auto id = newcomer();
  const auto one = wait(id, 2);
  tell(id, 0);
  tell(id, 2);
  EXPECT_TRUE(over(one));
}

// The others may have called another waiter: it asks, and finds out.
TEST_F(RedlockTurnInbox, WaiterThatFewNodesTellDoesNotWaitForTheOthers) {
  const auto id = newcomer();
  const auto one = wait(id, 3);
  tell(id, 0);
  EXPECT_TRUE(over(one));
}

TEST_F(RedlockTurnInbox, WhatWasHeardBeforeTheWaitCountsUntilTheWaiterAsks) {
  const auto id = newcomer();
  tell(id, 0);
  const auto witness = newcomer();
  tell(witness, 0);
  ASSERT_TRUE(over(wait(witness, 1))) << "by then all from that node has been heard";
  ASSERT_TRUE(over(wait(id, 1)));
  heard_->asks(*id);
  const auto again = wait(id, 1);
  EXPECT_NE(again.wait_for(0s), std::future_status::ready);
  tell(id, 1);
  EXPECT_TRUE(over(again));
}

TEST_F(RedlockTurnInbox, WhatIsForNobodyHereIsIgnored) {
  const auto id = newcomer();
  const auto one = wait(id, 1);
  tell(unknown(), 0);
  publish(0, "");
  publish(0, "not an id");
  publish(1, std::string{id->id.text()} + ";");
  const auto witness = newcomer();
  tell(witness, 0);
  ASSERT_TRUE(over(wait(witness, 1)));
  EXPECT_NE(one.wait_for(0s), std::future_status::ready);
  tell(id, 2);
  EXPECT_TRUE(over(one));
}

// One of them reads for all, and it is not known which: the one that is told goes, and the rest
// hear on.
TEST_F(RedlockTurnInbox, WhoeverLeavesAnotherOneListens) {
  constexpr int many = 8;
  std::vector<std::pair<waiter, std::shared_future<void>>> all;
  for (int i = 0; i < many; ++i) {
    const auto id = newcomer();
    all.emplace_back(id, wait(id, 1));
  }
  for (int i = 0; i < many; ++i) {
    const auto& [id, one] = all[static_cast<std::size_t>(i * 3 % many)];
    tell(id, static_cast<std::size_t>(i % 3));
    ASSERT_TRUE(over(one)) << i;
  }
}

TEST_F(RedlockTurnInbox, WhoeverStopsWaitingAnotherOneListens) {
  const auto first = newcomer();
  const auto second = newcomer();
  const auto one = wait(first, 1);
  const auto other = wait(second, 1);
  heard_->wake(*first);
  ASSERT_TRUE(over(one));
  const auto third = newcomer();
  const auto another = wait(third, 1);
  heard_->wake(*second);
  ASSERT_TRUE(over(other));
  tell(third, 0);
  EXPECT_TRUE(over(another));
}

// Nodes pass over a waiter that cannot be told: it has to ask again, and better now than in time.
TEST_F(RedlockTurnInbox, WaiterThatCouldNotBeToldIsWokenWhenItCan) {
  const auto id = unknown();
  unopened_->expect(id);
  const auto one = wait_at(*unopened_, id, 2);
  EXPECT_NE(one.wait_for(0s), std::future_status::ready);
  unopened_->open();
  ASSERT_TRUE(over(one));
}

TEST_F(RedlockTurnInbox, NodeThatIsGoneCostsItsMessageOnly) {
  const auto id = newcomer();
  const auto one = wait(id, 2);
  servers_[0].kill9();
  tell(id, 1);
  tell(id, 2);
  EXPECT_TRUE(over(one));
}

TEST_F(RedlockTurnInbox, CloseWakesEverybody) {
  const auto one = wait(newcomer(), 1);
  const auto other = wait(newcomer(), 2);
  heard_->close();
  EXPECT_TRUE(over(one));
  EXPECT_TRUE(over(other));
}

}  // namespace holdfast::test
