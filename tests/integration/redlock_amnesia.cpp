// Nodes that forget: restarted, emptied, new. A node that may have lost a vote must not give it to
// somebody else, and must not forget which tokens there were.
#include <gtest/gtest.h>

#include <holdfast/holdfast.hpp>

#include "client/open_store.hpp"
#include "client/url.hpp"
#include "runtime/background.hpp"
#include "runtime/clock.hpp"
#include "stores/redlock/node_set.hpp"
#include "support/holder_process.hpp"
#include "support/naive_redlock.hpp"
#include "support/open_client.hpp"
#include "support/redlock_nodes.hpp"
#include "support/saved_data.hpp"
#include "support/stepped_clock.hpp"
#include "support/watch.hpp"

using namespace std::chrono_literals;

namespace holdfast::test {

namespace {

constexpr auto record = "holdfast:{redlock}:node";

void empty_by_restart(redis_server& node) {
  node.kill9();
  node.restart();
}

bool votes(const redlock_nodes& set, std::size_t node) {
  const auto seen = redlock::status(set.url());
  return seen && (*seen)[node].votes;
}

bool in_quarantine(client& looks, std::size_t node, const std::string& because) {
  const auto seen = looks.status("orders").nodes.at(node);
  return seen.is == lock_on_node::state::quarantined &&
         seen.said.find(because) != std::string::npos;
}

// The counter of a lock on one node; 0 if it has none.
std::uint64_t counter(redis_server& node) {
  const auto fields = node.command({"HGETALL", record});
  const auto at = fields.find("c:");
  if (at == std::string::npos) return 0;
  const auto line = fields.find('\n', at);
  return std::stoull(fields.substr(line + 1));
}

using stores::redlock::node_set;

// The nodes, and nobody who lets them in.
std::shared_ptr<node_set> nodes_alone(const redlock_nodes& set) {
  const auto work = std::make_shared<runtime::background>(1);
  work->stop();
  auto nodes = std::make_shared<node_set>(
      detail::redlock_config_of(detail::parse_url(set.url()).value()), work);
  nodes->start();
  return nodes;
}

core::time_point with_patience() { return core::after(runtime::now(), patience); }

// As if whoever ran `init` was gone after the first node.
void begin_with_one(const redlock_nodes& set) {
  const auto nodes = nodes_alone(set);
  const auto seen = nodes->survey(with_patience());
  EXPECT_TRUE(nodes->admit(0, seen[0], node_set::admit_mode::vouched_for, {},
                           core::waits_of(node_set::reports_of(seen)), with_patience()));
  nodes->close();
}

}  // namespace

// Scenario F.
TEST(RedlockAmnesia, RestartedNodeGivesANaiveLockTwoHolders) {
  redlock_nodes set{5};
  naive_redlock naive{set.where(), "orders"};
  ASSERT_TRUE(naive.lock(60s));
  for (const std::size_t i : {3U, 4U})
    (void)set[i].command({"DEL", "orders"});  // as if it had been granted by three
  empty_by_restart(set[2]);
  EXPECT_TRUE(naive.lock(60s)) << "both hold it";
}

TEST(RedlockAmnesia, RestartedNodeDoesNotVote) {
  redlock_nodes set{5};
  client a{set.url(), {.lock = {.ttl = 60'000ms}}};
  client b{set.url(), {.lock = {.ttl = 60'000ms}, .unreachable_limit = 1ms}};
  { const lease warm = b.mutex("other").acquire(); }
  const lease held = a.mutex("orders").acquire();
  ASSERT_TRUE(set.await_all_holding("orders"));
  for (const std::size_t i : {3U, 4U})
    (void)set[i].command({"DEL", "orders"});
  empty_by_restart(set[2]);
  // It is there, and it says why it does not vote.
  EXPECT_TRUE(eventually([&] { return in_quarantine(b, 2, "empty"); }));
  for (int i = 0; i < 5; ++i) {
    (void)thrown_by([&] { EXPECT_FALSE(b.mutex("orders").try_acquire(100ms)) << "two holders"; });
  }
  EXPECT_TRUE(held.held());
}

// Scenario 24.
TEST(RedlockAmnesia, RestartedNodesMakeNaiveTokensGoBack) {
  redlock_nodes set{3};
  naive_redlock naive{set.where(), "orders"};
  std::int64_t last = 0;
  for (int i = 0; i < 5; ++i) {
    const auto held = naive.lock(60s);
    ASSERT_TRUE(held);
    last = held->token;
    naive.unlock(*held);
  }
  for (std::size_t i = 0; i < 3; ++i)
    empty_by_restart(set[i]);
  EXPECT_LT(naive.lock(60s)->token, last);
}

TEST(RedlockAmnesia, NodesGetTheirCountersBackOneAfterTheOther) {
  redlock_nodes set{3, {.query = "node_timeout=1000&max_ttl=1000"}};
  client c{set.url(), {.lock = {.ttl = 1'000ms}, .unreachable_limit = 30'000ms}};
  fencing_token last{0};
  {
    const lease first = c.mutex("orders").acquire();
    last = first.token();
    ASSERT_TRUE(set.await_all_holding("orders"));
  }
  for (std::size_t i = 0; i < 3; ++i) {
    ASSERT_TRUE(eventually([&] { return counter(set[i]) >= last.value(); }));
    empty_by_restart(set[i]);
    EXPECT_EQ(counter(set[i]), 0U);
    // Two of three go on meanwhile.
    const auto next = c.mutex("orders").try_acquire(patience);
    ASSERT_TRUE(next);
    EXPECT_GT(next->token(), last);
    last = next->token();
    ASSERT_TRUE(eventually([&] { return votes(set, i); }));
    EXPECT_GE(counter(set[i]), last.value()) << "as the other two have it";
  }
  const auto at_last = c.mutex("orders").try_acquire(patience);
  ASSERT_TRUE(at_last);
  EXPECT_GT(at_last->token(), last);
}

TEST(RedlockAmnesia, NodeWaitsForTheLongestTtlBeforeItVotes) {
  redlock_nodes set{3, {.query = "node_timeout=1000&max_ttl=2000"}};
  client c{set.url(), {.lock = {.ttl = 1'000ms}}};
  { const lease warm = c.mutex("orders").acquire(); }
  const auto started = runtime::now();
  empty_by_restart(set[0]);
  ASSERT_TRUE(eventually([&] {
    { const lease used = c.mutex("orders").acquire(); }  // clients see to it, no operator
    return votes(set, 0);
  }));
  EXPECT_GE(runtime::now() - started, 2'000ms);
}

TEST(RedlockAmnesia, EmptiedNodeIsNoticedOnALivingConnection) {
  redlock_nodes set{3};
  client a{set.url(), {.lock = {.ttl = 60'000ms}}};
  client b{set.url(), {.lock = {.ttl = 60'000ms}, .unreachable_limit = 1ms}};
  { const lease warm = b.mutex("other").acquire(); }
  const lease held = a.mutex("orders").acquire();
  ASSERT_TRUE(set.await_all_holding("orders"));
  (void)set[0].command({"FLUSHALL"});
  (void)set[1].command({"DEL", "orders"});
  // One busy, one that may vote for b, one that may not.
  (void)thrown_by([&] { EXPECT_FALSE(b.mutex("orders").try_acquire(300ms)) << "two holders"; });
  EXPECT_TRUE(eventually([&] { return !votes(set, 0); }));
  EXPECT_TRUE(held.held());
}

// Mutant ANOTHER_WAIT of models/redlock_blank.pml: a client that was asleep has counters from
// before the node was emptied again. Its run_id is what it was.
TEST(RedlockAmnesia, NodeThatWasEmptiedTwiceIsNotLetInByWhoSawTheFirstTime) {
  constexpr auto max_ttl = 200ms;
  redlock_nodes set{3, {.query = "node_timeout=1000&max_ttl=200"}};
  const auto nodes = nodes_alone(set);
  const auto after_emptying = [&] {
    (void)set[0].command({"FLUSHALL"});
    node_set::standing seen;
    EXPECT_TRUE(eventually([&] {
      seen = nodes->survey(with_patience())[0];
      return seen.report.is == core::node_report::standing::blank && seen.report.waited >= max_ttl;
    }));
    return seen;
  };
  const auto first = after_emptying();
  const auto second = after_emptying();
  EXPECT_FALSE(nodes->admit(0, first, node_set::admit_mode::waited, {}, {}, with_patience()));
  EXPECT_FALSE(votes(set, 0));
  EXPECT_TRUE(nodes->admit(0, second, node_set::admit_mode::waited, {}, {}, with_patience()));
  EXPECT_TRUE(votes(set, 0));
  nodes->close();
}

// Scenario 23: what was promised is on disk.
TEST(RedlockAmnesia, NodeThatLosesNothingVotesAgainAtOnce) {
  redlock_nodes set{3,
                    {.node = {.config = {"appendonly yes", "appendfsync always"}},
                     .query = "node_timeout=1000&max_ttl=600000"}};
  client c{set.url(), {.lock = {.ttl = 60'000ms}}};
  const lease held = c.mutex("orders").acquire();
  ASSERT_TRUE(set.await_all_holding("orders"));
  empty_by_restart(set[0]);
  EXPECT_EQ(set[0].command({"EXISTS", "orders"}), "1");
  EXPECT_TRUE(eventually([&] {
    (void)c.mutex("other").try_acquire();
    return votes(set, 0);
  }));
}

// Scenario 23, everysec: the last second is lost, the marker is not.
const redlock_nodes_options everysec{
    .node = {.config = {"appendonly yes", "appendfsync everysec"}},
};

// The state before `grant`, after a crash.
template <class Grant>
void forget_what_happens_in(redis_server& node, Grant grant) {
  const saved_data before{node.folder()};
  if (before.empty()) throw std::runtime_error{"the node has written nothing"};
  grant();
  node.kill9();
  before.put_back();
  node.restart();
}

TEST(RedlockAmnesia, LostSecondGivesANaiveLockTwoHolders) {
  redlock_nodes set{3, everysec};
  naive_redlock naive{set.where(), "orders"};
  forget_what_happens_in(set[0], [&] { ASSERT_TRUE(naive.lock(60s)); });
  (void)set[1].command({"DEL", "orders"});  // as if two had granted it
  EXPECT_TRUE(naive.lock(60s)) << "both hold it";
}

TEST(RedlockAmnesia, NodeThatLostItsLastSecondDoesNotVote) {
  redlock_nodes set{3, everysec};
  client a{set.url(), {.lock = {.ttl = 60'000ms}}};
  client b{set.url(), {.lock = {.ttl = 60'000ms}, .unreachable_limit = 1ms}};
  std::optional<lease> held;
  forget_what_happens_in(set[0], [&] {
    held = a.mutex("orders").try_acquire(patience);
    ASSERT_TRUE(held && set.await_all_holding("orders"));
  });
  EXPECT_EQ(set[0].command({"EXISTS", "orders"}), "0");
  (void)set[1].command({"DEL", "orders"});
  EXPECT_TRUE(eventually([&] { return in_quarantine(b, 0, "restarted"); }));
  for (int i = 0; i < 5; ++i) {
    (void)thrown_by([&] { EXPECT_FALSE(b.mutex("orders").try_acquire(100ms)) << "two holders"; });
  }
  EXPECT_FALSE(votes(set, 0));
}

TEST(RedlockAmnesia, NewSetBeginsByItselfAfterMaxTtl) {
  redlock_nodes set{3, {.query = "node_timeout=1000&max_ttl=1500", .init = false}};
  client c{set.url(), {.lock = {.ttl = 1'000ms}, .unreachable_limit = 1ms}};
  std::string what;
  EXPECT_EQ(thrown_by([&] { static_cast<void>(c.mutex("orders").try_acquire()); }, &what),
            errc::store_loading);
  EXPECT_NE(what.find("holdfast redlock init"), std::string::npos) << what;
  client patient{set.url(), {.lock = {.ttl = 1'000ms}, .unreachable_limit = 30'000ms}};
  EXPECT_TRUE(patient.mutex("orders").try_acquire(patience));
}

TEST(RedlockAmnesia, NewSetWhoseBeginningWasInterruptedGoesOnByItself) {
  redlock_nodes set{3, {.query = "node_timeout=1000&max_ttl=1500", .init = false}};
  begin_with_one(set);
  client c{set.url(), {.lock = {.ttl = 1'000ms}, .unreachable_limit = 30'000ms}};
  EXPECT_TRUE(c.mutex("orders").try_acquire(patience));
  EXPECT_TRUE(eventually([&] { return votes(set, 0) && votes(set, 1) && votes(set, 2); }));
}

TEST(RedlockAmnesia, InterruptedInitIsFinishedByAnother) {
  redlock_nodes set{3, {.query = "node_timeout=1000&max_ttl=600000", .init = false}};
  begin_with_one(set);
  const auto again = redlock::init(set.url());
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_TRUE(votes(set, 0) && votes(set, 1) && votes(set, 2));
}

// The second node may have voted before it was emptied.
TEST(RedlockAmnesia, InterruptedInitIsNotFinishedOverNodesThatForgot) {
  redlock_nodes set{3, {.query = "node_timeout=1000&max_ttl=600000", .init = false}};
  begin_with_one(set);
  (void)set[1].command({"FLUSHALL"});
  const auto again = redlock::init(set.url());
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, errc::store_refused);
  EXPECT_FALSE(votes(set, 1) || votes(set, 2));
}

TEST(RedlockAmnesia, InitIsForNewSetsOnly) {
  redlock_nodes set{3};
  EXPECT_TRUE(redlock::init(set.url())) << "all vote: nothing to do";
  empty_by_restart(set[0]);
  const auto again = redlock::init(set.url());
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, errc::store_refused);
  EXPECT_FALSE(votes(set, 0));
}

TEST(RedlockAmnesia, LostMajorityOfCountersWaitsForAPerson) {
  redlock_nodes set{3, {.query = "node_timeout=1000&max_ttl=1000"}};
  client c{set.url(), {.lock = {.ttl = 1'000ms}, .unreachable_limit = 1ms}};
  const auto last = c.mutex("orders").acquire().token();
  empty_by_restart(set[0]);
  empty_by_restart(set[1]);
  const auto early = redlock::recover(set.url());
  ASSERT_FALSE(early);
  EXPECT_EQ(early.error().code, errc::store_loading);
  let_pass(1'500ms);  // they could have been let in by now
  EXPECT_NE(thrown_by([&] { static_cast<void>(c.mutex("orders").try_acquire()); }), errc{});
  // Everybody is told what only a person can do.
  EXPECT_TRUE(eventually([&] {
    std::string what;
    const auto code = thrown_by([&] { static_cast<void>(c.mutex("orders").try_acquire()); }, &what);
    return code != errc{} && what.find("holdfast redlock recover") != std::string::npos;
  }));
  const auto seen = redlock::status(set.url());
  ASSERT_TRUE(seen);
  EXPECT_NE((*seen)[0].said.find("holdfast redlock recover"), std::string::npos) << (*seen)[0].said;
  EXPECT_EQ((*seen)[2].said, "votes");
  const auto ok = redlock::recover(set.url());
  ASSERT_TRUE(ok) << ok.error().message;
  const auto held = c.mutex("orders").try_acquire(patience);
  ASSERT_TRUE(held);
  EXPECT_GT(held->token(), last);
}

// A client whose clock was as far ahead as nodes bear: nobody remembers its token, nor does any
// clock that is right reach it.
TEST(RedlockAmnesia, RecoveredNodesGoOnAboveTokensAheadOfTheirClocks) {
  redlock_nodes set{3, {.query = "node_timeout=1000&max_ttl=1000"}};
  stepped_clock fast;
  fast.step_wall_clock(55s);
  fencing_token last{0};
  {
    holder_process ahead{set.url(), "orders", 1'000ms, fast.environment()};
    ahead.await_held();
    last = ahead.token();
  }
  client c{set.url(), {.lock = {.ttl = 1'000ms}, .unreachable_limit = 1ms}};
  for (std::size_t i = 0; i < 3; ++i)
    (void)set[i].command({"HDEL", record, counter_field(set[i])});  // what is left knows nothing
  empty_by_restart(set[0]);
  empty_by_restart(set[1]);
  ASSERT_TRUE(eventually([&] { return redlock::recover(set.url()).has_value(); }));
  auto held = c.mutex("orders").try_acquire(patience);
  ASSERT_TRUE(held);
  EXPECT_GT(held->token(), last);
  // And on from there: a client that saw the token is not taken for one that is ahead.
  ASSERT_TRUE(held->release());
  EXPECT_GT(c.mutex("orders").acquire().token(), held->token());
}

}  // namespace holdfast::test
