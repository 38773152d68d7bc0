// status() over a quorum: what each node says of a lock.
#include <gtest/gtest.h>

#include <holdfast/holdfast.hpp>

#include "support/naive_redlock.hpp"
#include "support/open_client.hpp"
#include "support/redlock_nodes.hpp"
#include "support/watch.hpp"

using namespace std::chrono_literals;

namespace holdfast::test {

namespace {

using state = lock_on_node::state;

std::vector<state> states(const lock_status& of) {
  std::vector<state> all;
  for (const auto& one : of.nodes)
    all.push_back(one.status);
  return all;
}

}  // namespace

TEST(RedlockStatus, FreeLockIsFreeOnEveryNode) {
  redlock_nodes set{3};
  client c{set.url()};
  const auto status = c.status("orders");
  EXPECT_EQ(states(status), (std::vector{state::free, state::free, state::free}));
  for (std::size_t i = 0; i < 3; ++i)
    EXPECT_EQ(status.nodes[i].node, set.name(i)) << "as the URL names them";
}

TEST(RedlockStatus, EveryNodeSaysWhatItHas) {
  redlock_nodes set{5, {.query = "node_timeout=1000&max_ttl=600000"}};
  client c{set.url(), {.lock = {.ttl = 600'000ms, .label = "night\nly"}}};
  const lease held = c.mutex("orders").acquire();
  ASSERT_TRUE(set.await_all_holding("orders"));
  (void)set[1].command({"DEL", "orders"});
  set[2].kill9();
  set[2].restart();
  (void)redlock::status(set.url());  // begins its wait

  // Its connection to the old server is found broken first, and the new one is asked then.
  const auto status = c.status("orders");
  ASSERT_TRUE(status.holder);
  EXPECT_EQ(states(status),
            (std::vector{state::held, state::free, state::quarantined, state::held, state::held}));
  for (const std::size_t i : {0U, 3U, 4U}) {
    EXPECT_EQ(status.nodes[i].holder.value().token, held.token());
    EXPECT_EQ(status.nodes[i].holder.value().label, "night\nly");
    EXPECT_GT(status.nodes[i].remaining.value(), 300s);
  }
  EXPECT_FALSE(status.nodes[1].holder || status.nodes[1].remaining);
  EXPECT_GT(status.nodes[2].remaining.value(), 300s);
  EXPECT_LE(status.nodes[2].remaining.value(), 600s);
  EXPECT_NE(status.nodes[2].reason.find("may have lost locks"), std::string::npos);
  const auto listed = c.list("*");
  ASSERT_EQ(listed.size(), 1U);
  EXPECT_EQ(states(listed[0]), states(status));

  set[1].kill9();
  const auto later = c.status("orders");
  EXPECT_EQ(later.nodes[1].status, state::unreachable);
  EXPECT_FALSE(later.nodes[1].reason.empty());
}

TEST(RedlockStatus, SomebodyWithoutAMajorityIsSomebodyElse) {
  redlock_nodes set{3};
  client c{set.url(), {.lock = {.ttl = 60'000ms}}};
  (void)set[2].command({"SET", "orders", "a stranger", "PX", "60000"});
  const auto before = c.status("orders");
  EXPECT_FALSE(before.holder);
  EXPECT_EQ(states(before), (std::vector{state::free, state::free, state::other}));
  EXPECT_EQ(before.nodes[2].holder.value().value, "a stranger");

  const lease held = c.mutex("orders").acquire();
  EXPECT_EQ(states(c.status("orders")), (std::vector{state::held, state::held, state::other}));
  (void)set[2].command({"SET", "orders",
                        std::string(32, 'a') + ";holdfast=1;token=7;block=1;since=1000;host=h;"
                                               "pid=1;label=",
                        "PX", "60000"});
  const auto after = c.status("orders");
  EXPECT_EQ(states(after), (std::vector{state::held, state::held, state::other}));
  EXPECT_EQ(after.nodes[2].holder.value().token, fencing_token{7});
}

TEST(RedlockStatus, WaiterInSeveralQueuesIsShownOnceWhereItsLowestTicketIs) {
  redlock_nodes set{3};
  client c{set.url(), {.lock = {.ttl = 60'000ms}}};
  const lease held = c.mutex("orders").acquire();
  ASSERT_TRUE(set.await_all_holding("orders"));
  const auto joins = [&](std::size_t node, const std::string& ticket, const std::string& entry) {
    (void)set[node].command({"ZADD", "holdfast:{redlock}:waiters:orders", ticket, entry});
  };
  const auto entry = [](char waiter, const std::string& label) {
    return std::string(32, waiter) + std::string(32, 'c') + "host=h;pid=7;label=" + label;
  };
  joins(0, "1763197261000001", "no entry");
  joins(1, "1763197262000002", entry('b', "next"));
  joins(1, "1763197262000003", entry('a', "first"));
  joins(2, "1763197262000001", entry('a', "first"));

  const auto status = c.status("orders");
  EXPECT_EQ(status.waiting, 2U);
  ASSERT_EQ(status.waiters.size(), 2U);
  EXPECT_EQ(status.waiters[0].label, "first");
  EXPECT_EQ(status.waiters[1].label, "next");
  EXPECT_EQ(status.waiters[0].pid, 7);
  EXPECT_EQ(status.waiters[0].since.time_since_epoch(), 1763197262000ms);
}

TEST(RedlockStatus, NodeOfAnotherSetRefusesAndTheOthersAnswer) {
  redlock_nodes set{3};
  client c{set.url(), {.lock = {.ttl = 60'000ms}}};
  const lease held = c.mutex("orders").acquire();
  ASSERT_TRUE(set.await_all_holding("orders"));
  (void)set[0].command({"HSET", "holdfast:{redlock}:node", "config", "other", "nodes", "x,\x1by"});
  const auto status = c.status("orders");
  EXPECT_TRUE(status.holder);
  EXPECT_EQ(states(status), (std::vector{state::refused, state::held, state::held}));
  EXPECT_NE(status.nodes[0].reason.find("belongs to the set x,\\x1by"), std::string::npos)
      << status.nodes[0].reason;
}

TEST(RedlockStatus, TooFewNodesIsAnErrorThatNamesThem) {
  redlock_nodes set{3};
  client c{set.url()};
  set[0].kill9();
  set[1].kill9();
  std::string what;
  EXPECT_EQ(thrown_by([&] { static_cast<void>(c.status("orders")); }, &what),
            errc::store_unreachable);
  EXPECT_NE(what.find(set.name(0)), std::string::npos) << what;
  EXPECT_NE(what.find(set.name(1)), std::string::npos) << what;
}

}  // namespace holdfast::test
