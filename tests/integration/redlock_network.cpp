// A majority of nodes behind a network that loses, delays and hangs; each beside a naive Redlock
// that it must break.
#include <algorithm>
#include <set>
#include <thread>

#include <gtest/gtest.h>

#include <holdfast/holdfast.hpp>

#include "runtime/clock.hpp"
#include "support/naive_redlock.hpp"
#include "support/open_client.hpp"
#include "support/proxied_redlock.hpp"
#include "support/watch.hpp"

using namespace std::chrono_literals;

namespace holdfast::test {

namespace {

// Part of every acquire request of a lock with this name, and of nothing else of it.
const std::string acquire_mark = "label=marked";

client_options marked(std::chrono::milliseconds ttl,
                      std::chrono::milliseconds operation = 2'000ms) {
  return {.lock = {.ttl = ttl, .label = "marked"}, .operation_timeout = operation};
}

}  // namespace

// Scenarios E and 17.
TEST(RedlockNetwork, SlowNodesMakeANaiveClientBelieveAnExpiredGrant) {
  proxied_redlock set{3};
  naive_redlock naive{set.where(), "orders"};
  for (std::size_t i = 0; i < 3; ++i)
    set[i].delay_replies(250ms);
  const auto believed = naive.lock(1'000ms);  // two requests to each of three nodes: 1.5 s
  ASSERT_TRUE(believed);
  EXPECT_LT(set.servers.holding("orders"), 2U) << "a majority has expired before it was told";
}

TEST(RedlockNetwork, SlowNodesAreAskedTogether) {
  proxied_redlock set{3, "node_timeout=5000"};
  client c = set.warm_client(marked(5'000ms));
  for (std::size_t i = 0; i < 3; ++i)
    set[i].delay_replies(400ms);
  const auto started = runtime::now();
  const auto held = c.mutex("orders").try_acquire();
  const auto took = runtime::now() - started;
  ASSERT_TRUE(held);
  EXPECT_GE(took, 400ms);
  EXPECT_LT(took, 1'200ms) << "one after the other would take 1.2 s";
}

// A node has as long for its answer as it was given, and its connection lives for as long.
TEST(RedlockNetwork, NodesThatAreSlowerThanMostAreWaitedForIfToldSo) {
  proxied_redlock set{3, "node_timeout=5000"};
  client c = set.warm_client(marked(60'000ms, 20'000ms));
  for (std::size_t i = 0; i < 3; ++i)
    set[i].delay_replies(1'200ms);
  EXPECT_TRUE(c.mutex("orders").try_acquire());
}

TEST(RedlockNetwork, GrantThatIsCompleteAfterItsTtlIsGivenBack) {
  proxied_redlock set{3, "node_timeout=5000"};
  client c = set.warm_client(marked(300ms));
  for (std::size_t i = 0; i < 3; ++i)
    set[i].delay_replies(400ms);
  EXPECT_FALSE(c.mutex("orders").try_acquire());
  EXPECT_TRUE(set.servers.await_none_holding("orders"));
}

// Scenario G, and 16: requests in, no replies out.
TEST(RedlockNetwork, LostRepliesLeaveANaiveClientsKeysBehind) {
  proxied_redlock set{3};
  naive_redlock naive{set.where(), "orders", 200ms};
  for (std::size_t i = 0; i < 2; ++i)
    set[i].inject(fault::swallow_reply, "SET");
  EXPECT_FALSE(naive.lock(60'000ms));
  EXPECT_EQ(set.servers.holding("orders"), 2U);
  // Scenario 20: its own keys vote against its next attempt.
  EXPECT_FALSE(naive.lock(60'000ms));
}

TEST(RedlockNetwork, NodesWhoseReplyWasLostAreReleased) {
  proxied_redlock set{3, "node_timeout=200"};
  client c = set.warm_client(
      client_options{.lock = {.ttl = 60'000ms, .label = "marked"}, .unreachable_limit = 1ms});
  for (std::size_t i = 0; i < 2; ++i)
    set[i].inject(fault::cut_before_reply, acquire_mark);
  std::string what;
  const auto code = thrown_by([&] { static_cast<void>(c.mutex("orders").try_acquire()); }, &what);
  EXPECT_TRUE(code == errc::store_unreachable || code == errc::outcome_unknown) << what;
  EXPECT_NE(what.find("of 3 granted"), std::string::npos) << what;
  EXPECT_TRUE(set.servers.await_none_holding("orders"));
}

// Scenario 20.
TEST(RedlockNetwork, OwnPartialKeysDoNotVoteAgainstTheNextAttempt) {
  proxied_redlock set{3, "node_timeout=200"};
  client c = set.warm_client(
      client_options{.lock = {.ttl = 60'000ms, .label = "marked"}, .unreachable_limit = 30'000ms});
  for (std::size_t i = 0; i < 2; ++i)
    set[i].inject(fault::cut_before_reply, acquire_mark);
  EXPECT_TRUE(c.mutex("orders").try_acquire(20s)) << "long before the TTL";
  EXPECT_TRUE(set[0].await_faults(1) && set[1].await_faults(1)) << "the first attempt was lost";
}

// Scenario 15: an acquire that arrives after its own release is an orphan, for a TTL at most.
TEST(RedlockNetwork, AcquireThatOvertakesNothingIsGoneAfterItsTtl) {
  proxied_redlock set{3, "node_timeout=200"};
  client c = set.warm_client(
      client_options{.lock = {.ttl = 1'500ms, .label = "marked"}, .unreachable_limit = 1ms});
  for (std::size_t i = 0; i < 2; ++i)
    set[i].inject(fault::hold_and_cut, acquire_mark);
  EXPECT_NE(thrown_by([&] { static_cast<void>(c.mutex("orders").try_acquire()); }), errc{});
  for (std::size_t i = 0; i < 2; ++i)
    set[i].let_go();
  client other{set.url(), marked(1'000ms)};
  EXPECT_TRUE(other.mutex("orders").try_acquire(patience));
}

// Scenario 18. What a naive client leaves of a split vote wedges the lock for a TTL.
TEST(RedlockNetwork, SplitVoteWedgesNaiveClients) {
  redlock_nodes set{5};
  naive_redlock a{set.where(), "orders"};
  naive_redlock::held one{"a", 0, {}};
  naive_redlock::held two{"b", 0, {}};
  naive_redlock::held three{"c", 0, {}};
  EXPECT_TRUE(a.take(one, 0, 60s) && a.take(one, 1, 60s));
  EXPECT_TRUE(a.take(two, 2, 60s) && a.take(two, 3, 60s));
  EXPECT_TRUE(a.take(three, 4, 60s));
  // Each asks on and gets no more; without giving back what it has, nobody ever will.
  EXPECT_FALSE(a.take(one, 2, 60s) || a.take(two, 4, 60s) || a.take(three, 0, 60s));
  EXPECT_FALSE(a.lock(60s));
}

TEST(RedlockNetwork, ContendersDoNotLivelock) {
  constexpr int contenders = 16;
  constexpr int rounds = 4;
  redlock_nodes set{5};
  std::atomic<int> inside{0};
  std::atomic<int> most{0};
  std::vector<std::uint64_t> tokens;  // guarded by the lock under test
  std::vector<std::thread> threads;
  for (int i = 0; i < contenders; ++i) {
    threads.emplace_back([&] {
      client mine{set.url(), {.lock = {.ttl = 30'000ms}}};  // each is an owner of its own
      for (int k = 0; k < rounds; ++k) {
        lease held = mine.mutex("orders").acquire();
        most = std::max(most.load(), ++inside);
        tokens.push_back(held.token().value());
        --inside;
        EXPECT_TRUE(held.release());
      }
    });
  }
  for (auto& one : threads)
    one.join();
  EXPECT_EQ(most, 1);
  ASSERT_EQ(tokens.size(), std::size_t{contenders * rounds});
  EXPECT_TRUE(std::is_sorted(tokens.begin(), tokens.end()));
  EXPECT_EQ(std::set<std::uint64_t>(tokens.begin(), tokens.end()).size(), tokens.size());
}

// Scenario 19.
TEST(RedlockNetwork, HungNodeCostsANaiveClientItsTimeoutEachTime) {
  redlock_nodes set{5};
  naive_redlock naive{set.where(), "orders", 300ms};
  set[1].pause();
  const auto started = runtime::now();
  EXPECT_TRUE(naive.lock(10'000ms));
  EXPECT_GE(runtime::now() - started, 300ms);
}

class broken_minority : public testing::TestWithParam<bool> {};

TEST_P(broken_minority, CostsNothing) {
  const bool hung = GetParam();
  redlock_nodes set{5, {.query = "node_timeout=10000&max_ttl=60000"}};
  client c{set.url(), {.lock = {.ttl = 60'000ms}}};
  { const lease warm = c.mutex("orders").acquire(); }
  for (const std::size_t i : {1U, 3U})
    hung ? set[i].pause() : set[i].kill9();
  constexpr int rounds = 20;
  const auto started = runtime::now();
  for (int i = 0; i < rounds; ++i) {
    const auto held = c.mutex("orders").try_acquire();
    ASSERT_TRUE(held) << "round " << i;
  }
  EXPECT_LT(runtime::now() - started, 5s) << "one wait for a node would be 10 s";
}

INSTANTIATE_TEST_SUITE_P(Redlock, broken_minority, testing::Bool(),
                         [](const auto& one) { return one.param ? "Hung" : "Dead"; });

TEST(RedlockNetwork, BrokenMajorityIsToldNodeByNode) {
  redlock_nodes set{5, {.query = "node_timeout=200"}};
  client c{set.url(), {.unreachable_limit = 1ms}};
  { const lease warm = c.mutex("orders").acquire(); }
  set[0].kill9();
  set[1].kill9();
  set[4].pause();
  std::string what;
  EXPECT_TRUE(eventually([&] {
    (void)thrown_by([&] { static_cast<void>(c.mutex("orders").try_acquire()); }, &what);
    return what.find(set.name(0) + ", " + set.name(1) + ": Connection refused") !=
               std::string::npos &&
           what.find(set.name(4) + ": no ") != std::string::npos;
  })) << what;
  EXPECT_NE(what.find(" of 5 granted"), std::string::npos) << what;
  EXPECT_TRUE(eventually([&] {
    return set[2].command({"EXISTS", "orders"}) == "0" &&
           set[3].command({"EXISTS", "orders"}) == "0";
  }));
}

// A release that a node missed reaches it when it is back.
TEST(RedlockNetwork, ReleaseReachesANodeThatWasCutOff) {
  proxied_redlock set{3, "node_timeout=200"};
  client c = set.warm_client(marked(60'000ms));
  auto held = c.mutex("orders").try_acquire();
  ASSERT_TRUE(held);
  EXPECT_TRUE(set.servers.await_all_holding("orders"));
  set[0].cut_all();
  set[0].serve_new(false);
  EXPECT_TRUE(held->release());
  EXPECT_EQ(set.servers[0].command({"EXISTS", "orders"}), "1");
  set[0].serve_new(true);
  EXPECT_TRUE(set.servers.await_none_holding("orders"));
}

}  // namespace holdfast::test
