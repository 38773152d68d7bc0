// How a waiter hears that nodes have voted for it, apart from waiting: there it would ask again
// soon anyway, and a call that nobody heard would not be missed.
#include <array>
#include <future>

#include <gtest/gtest.h>

#include "runtime/background.hpp"
#include "runtime/clock.hpp"
#include "runtime/random.hpp"
#include "runtime/socket.hpp"
#include "stores/redlock/vote_inbox.hpp"
#include "support/process.hpp"
#include "support/redis_server.hpp"

using namespace std::chrono_literals;

namespace holdfast::test {

namespace {

using stores::redlock::line;
using stores::redlock::vote_inbox;

class RedlockVoteInbox : public ::testing::Test {
 protected:
  RedlockVoteInbox() {
    heard_.open();
    EXPECT_TRUE(eventually([&] { return listens(0) && listens(1) && listens(2); }));
  }
  ~RedlockVoteInbox() override {
    heard_.close();
    unopened_.close();
    for (auto& one : waiting_)
      one.wait();
    for (const auto& one : lines_)
      one->close();
    connecting_->stop();
  }

  core::owner_id newcomer() {
    const auto id = runtime::fresh_owner();
    heard_.expect(id);
    return id;
  }
  // Longer than any test may take.
  std::shared_future<void> wait(const core::owner_id& id, std::size_t nodes,
                                const std::stop_token& stop = {}) {
    return wait_at(heard_, id, nodes, stop);
  }
  std::shared_future<void> wait_at(vote_inbox& inbox, const core::owner_id& id, std::size_t nodes,
                                   const std::stop_token& stop = {}) {
    waiting_.emplace_back(std::async(std::launch::async, [&inbox, id, nodes, stop] {
      inbox.wait(id, nodes, core::after(runtime::now(), 10min), stop);
    }));
    return waiting_.back();
  }
  void call(const core::owner_id& id, std::size_t node, const std::string& token = "7") {
    publish(node, std::string{id.text()} + ";" + token);
  }
  void publish(std::size_t node, const std::string& message) {
    const auto channel = "holdfast:vote:" + std::string{heard_.inbox()};
    EXPECT_EQ(servers_[node].command({"PUBLISH", channel, message}), "1");
  }
  static bool over(const std::shared_future<void>& one) {
    return eventually([&] { return one.wait_for(0s) == std::future_status::ready; });
  }

  std::array<redis_server, 3> servers_;

 private:
  bool listens(std::size_t node) {
    return servers_[node].command({"PUBSUB", "CHANNELS", "holdfast:vote:*"}).find("vote") !=
           std::string::npos;
  }
  std::vector<std::shared_ptr<line>> lines() {
    for (const auto& server : servers_) {
      const stores::redis::endpoint where{"node",
                                          [path = server.socket_path()](core::time_point until) {
                                            return runtime::connect_unix(path, until);
                                          },
                                          "", "", 0};
      lines_.push_back(std::make_shared<line>(where, 500ms, connecting_, line::hooks{}));
    }
    return lines_;
  }

  std::shared_ptr<runtime::background> connecting_ = std::make_shared<runtime::background>(3);
  std::vector<std::shared_ptr<line>> lines_;
  std::vector<std::shared_future<void>> waiting_;

 protected:
  vote_inbox heard_{lines(), connecting_};
  vote_inbox unopened_{lines_, connecting_};
};

}  // namespace

TEST_F(RedlockVoteInbox, WakesTheOneWhoIsCalledByAsManyAsItWants) {
  const auto id = newcomer();
  const auto one = wait(id, 2);
  call(id, 0, "12");
  call(id, 0, "13");
  const auto witness = newcomer();
  call(witness, 0);
  ASSERT_TRUE(over(wait(witness, 1))) << "by then all from that node has been heard";
  EXPECT_NE(one.wait_for(0s), std::future_status::ready) << "the same node twice is one vote";
  call(id, 2, "13");
  ASSERT_TRUE(over(one));
  auto calls = heard_.take(id);
  ASSERT_EQ(calls.size(), 2U);
  EXPECT_EQ(calls[0].node + calls[1].node, 2U);
  EXPECT_EQ(calls[0].token, 13U);
  EXPECT_EQ(calls[1].token, 13U);
  EXPECT_TRUE(heard_.take(id).empty()) << "each is taken once";
}

TEST_F(RedlockVoteInbox, CallThatCameBeforeTheWaitCounts) {
  const auto id = newcomer();
  call(id, 0);
  EXPECT_TRUE(over(wait(id, 1)));
}

TEST_F(RedlockVoteInbox, WhatIsNotForAnybodyHereOrNoCallAtAllIsIgnored) {
  const auto id = newcomer();
  const auto one = wait(id, 1);
  call(runtime::fresh_owner(), 0);
  publish(0, "");
  publish(0, "not an id");
  publish(1, std::string{id.text()});
  publish(1, std::string{id.text()} + ";");
  call(id, 2);
  ASSERT_TRUE(over(one));
  EXPECT_EQ(heard_.take(id).size(), 1U);
}

// One of them reads for all, and it is not known which: whoever is called goes, and the rest hear
// on.
TEST_F(RedlockVoteInbox, WhoeverLeavesAnotherOneListens) {
  constexpr int many = 8;
  std::vector<std::pair<core::owner_id, std::shared_future<void>>> all;
  for (int i = 0; i < many; ++i) {
    const auto id = newcomer();
    all.emplace_back(id, wait(id, 1));
  }
  for (int i = 0; i < many; ++i) {
    const auto& [id, one] = all[static_cast<std::size_t>(i * 3 % many)];
    call(id, static_cast<std::size_t>(i % 3));
    ASSERT_TRUE(over(one)) << i;
  }
}

TEST_F(RedlockVoteInbox, WhoeverStopsWaitingAnotherOneListens) {
  const auto first = newcomer();
  const auto second = newcomer();
  std::stop_source stop_first;
  std::stop_source stop_second;
  const auto one = wait(first, 1, stop_first.get_token());
  const auto other = wait(second, 1, stop_second.get_token());
  stop_first.request_stop();
  ASSERT_TRUE(over(one));
  const auto third = newcomer();
  const auto another = wait(third, 1);
  stop_second.request_stop();
  ASSERT_TRUE(over(other));
  call(third, 0);
  EXPECT_TRUE(over(another));
}

// Nodes pass over somebody who cannot be called: it has to ask again, and better now than in time.
TEST_F(RedlockVoteInbox, WhoCouldNotBeCalledIsWokenWhenItCan) {
  const auto id = runtime::fresh_owner();
  unopened_.expect(id);
  const auto one = wait_at(unopened_, id, 2);
  EXPECT_NE(one.wait_for(0s), std::future_status::ready);
  unopened_.open();
  ASSERT_TRUE(over(one));
  EXPECT_TRUE(unopened_.take(id).empty());
}

TEST_F(RedlockVoteInbox, NodeThatIsGoneCostsItsCallOnly) {
  const auto id = newcomer();
  const auto one = wait(id, 2);
  servers_[0].kill9();
  call(id, 1);
  call(id, 2);
  EXPECT_TRUE(over(one));
}

TEST_F(RedlockVoteInbox, CloseWakesEverybody) {
  const auto one = wait(newcomer(), 1);
  const auto other = wait(newcomer(), 2);
  heard_.close();
  EXPECT_TRUE(over(one));
  EXPECT_TRUE(over(other));
}

}  // namespace holdfast::test
