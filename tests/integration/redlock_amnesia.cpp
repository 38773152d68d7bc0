// Nodes that forget: restarted, emptied, new. A node that may have lost a vote must not give it to
// somebody else, and must not forget which tokens there were.
#include <algorithm>
#include <fstream>

#include <gtest/gtest.h>

#include <holdfast/holdfast.hpp>

#include "client/open_store.hpp"
#include "client/url.hpp"
#include "redlock_scripts.hpp"
#include "runtime/background.hpp"
#include "runtime/clock.hpp"
#include "runtime/random.hpp"
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

// False also while too few nodes answer, as may be on a slow machine.
bool in_quarantine(client& looks, std::size_t node, const std::string& because) {
  bool is = false;
  (void)thrown_by([&] {
    const auto seen = looks.status("orders").nodes.at(node);
    is = seen.status == lock_on_node::state::quarantined &&
         seen.reason.find(because) != std::string::npos;
  });
  return is;
}

// The counter of a lock on one node; 0 if it has none.
std::uint64_t counter(redis_server& node) {
  const auto fields = node.command({"HGETALL", record});
  const auto at = fields.find("c:");
  if (at == std::string::npos) return 0;
  const auto line = fields.find('\n', at);
  return std::stoull(fields.substr(line + 1));
}

// Answers like a client's would, and nobody who lets nodes in.
class lone_rejoin {
 public:
  using step = stores::redlock::rejoining::step;
  explicit lone_rejoin(const redlock_nodes& set)
      : nodes_{std::make_shared<stores::redlock::node_set>(
            detail::redlock_config_of(detail::parse_url(set.url()).value()), work_,
            stores::redlock::node_set::role::visitor)} {}
  lone_rejoin(const lone_rejoin&) = delete;
  lone_rejoin& operator=(const lone_rejoin&) = delete;
  ~lone_rejoin() {
    nodes_->close();
    work_->stop();
  }
  stores::redlock::rejoining operation() {
    return {nodes_->identity(), core::admission_rule{nodes_->size()},
            [] { return std::string{runtime::fresh_owner().text()}; }};
  }
  // Does what a step says, and tells the operation.
  step perform(stores::redlock::rejoining& what, const step& next) {
    const auto answers = nodes_->run_on_records(next.asks, core::after(runtime::now(), patience));
    stores::redlock::rejoining::answers said;
    for (const auto& one : answers)
      said.push_back(one && *one ? (*one)->get() : nullptr);
    return what.on_answers(said, runtime::now(), runtime::wall_ms());
  }
  // Looks until it has read the counters for a node whose wait is over, and is about to let it in.
  step about_to_admit(stores::redlock::rejoining& what) {
    auto next = what.start(runtime::now(), runtime::wall_ms());
    EXPECT_TRUE(eventually([&] {
      if (next.what == step::verb::pause) next = what.start(runtime::now(), runtime::wall_ms());
      const bool admits = next.what == step::verb::ask &&
                          std::any_of(next.asks.begin(), next.asks.end(), [](const auto& one) {
                            return one && one->which == &stores::redlock::scripts::admit;
                          });
      if (!admits && next.what == step::verb::ask) next = perform(what, next);
      return admits;
    }));
    return next;
  }

 private:
  const std::shared_ptr<runtime::background> work_ = std::make_shared<runtime::background>(1);
  const std::shared_ptr<stores::redlock::node_set> nodes_;
};

// Short waits, for sets that have to come back by themselves.
const redlock_nodes_options short_waits{.query = "node_timeout=1000&max_ttl=1000"};
const client_options impatient{.lock = {.ttl = 1'000ms}, .unreachable_limit = 1ms};

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

// A client that was asleep has counters from before the node was emptied again. Its run_id is what
// it was.
TEST(RedlockAmnesia, NodeThatWasEmptiedTwiceIsNotLetInByWhoSawTheFirstTime) {
  redlock_nodes set{3, {.query = "node_timeout=1000&max_ttl=200"}};
  lone_rejoin client_of{set};
  (void)set[0].command({"FLUSHALL"});
  auto sleeper = client_of.operation();
  const auto outdated = client_of.about_to_admit(sleeper);
  (void)set[0].command({"FLUSHALL"});
  auto awake = client_of.operation();
  const auto fresh = client_of.about_to_admit(awake);
  (void)client_of.perform(sleeper, outdated);
  EXPECT_FALSE(votes(set, 0));
  (void)client_of.perform(awake, fresh);
  EXPECT_TRUE(votes(set, 0));
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

// It forgets a vote, and is started again with what `settings` adds. Another vote is gone as well:
// if the node voted at once, there would be a second holder.
void node_that_lost_its_last_second_does_not_vote(const std::string& settings) {
  redlock_nodes set{3, everysec};
  client a{set.url(), {.lock = {.ttl = 60'000ms}}};
  client b{set.url(), {.lock = {.ttl = 60'000ms}, .unreachable_limit = 1ms}};
  std::optional<lease> held;
  forget_what_happens_in(set[0], [&] {
    held = a.mutex("orders").try_acquire(patience);
    ASSERT_TRUE(held && set.await_all_holding("orders"));
    std::ofstream{set[0].folder() / "redis.conf", std::ios::app} << settings;
  });
  EXPECT_EQ(set[0].command({"EXISTS", "orders"}), "0");
  (void)set[1].command({"DEL", "orders"});
  EXPECT_TRUE(eventually([&] { return in_quarantine(b, 0, "restarted"); }));
  for (int i = 0; i < 5; ++i) {
    (void)thrown_by([&] { EXPECT_FALSE(b.mutex("orders").try_acquire(100ms)) << "two holders"; });
  }
  EXPECT_FALSE(votes(set, 0));
}

TEST(RedlockAmnesia, NodeThatLostItsLastSecondDoesNotVote) {
  node_that_lost_its_last_second_does_not_vote("");
}

// Today's settings say nothing about what happened before.
TEST(RedlockAmnesia, NodeThatIsSafeNowMayHaveLostSomethingBefore) {
  node_that_lost_its_last_second_does_not_vote("appendfsync always\n");
}

// Minutes slow at boot, and set right a moment later: by its clock the wait is over at once.
TEST(RedlockAmnesia, NodeWhoseClockIsSetRightAfterItsStartWaitsAllTheSame) {
  stepped_clock clock;
  redlock_nodes set{3, {.node = clock.on()}};
  client c{set.url(), {.lock = {.ttl = 60'000ms}}};
  clock.step_wall_clock(-5min);
  empty_by_restart(set[0]);
  ASSERT_TRUE(eventually([&] {
    { const lease used = c.mutex("orders").acquire(); }
    return set[0].command({"HEXISTS", record, "seen"}) == "1";
  })) << "its wait has begun";
  clock.step_wall_clock(5min);
  let_pass(2'500ms);  // the client looks each second
  EXPECT_FALSE(votes(set, 0));
}

TEST(RedlockAmnesia, NodeWhoseClockIsSetBackWaitsOnceMoreNotForAnHour) {
  stepped_clock clock;
  redlock_nodes set{3, {.node = clock.on(), .query = short_waits.query}};
  client c{set.url(), {.lock = {.ttl = 1'000ms}}};
  empty_by_restart(set[0]);
  ASSERT_TRUE(eventually([&] {
    { const lease used = c.mutex("orders").acquire(); }
    return set[0].command({"HEXISTS", record, "seen"}) == "1";
  }));
  clock.step_wall_clock(-1h);
  EXPECT_TRUE(eventually([&] { return votes(set, 0); }));
}

TEST(RedlockAmnesia, NewSetIsWaitedForByThoseWhoWait) {
  redlock_nodes set{3, {.query = "node_timeout=1000&max_ttl=1500", .init = false}};
  client c{set.url(), impatient};
  std::string what;
  EXPECT_EQ(thrown_by([&] { static_cast<void>(c.mutex("orders").try_acquire()); }, &what),
            errc::store_loading);
  const auto advice = what.find("holdfast redlock init");
  ASSERT_NE(advice, std::string::npos) << what;
  EXPECT_EQ(what.find("holdfast redlock init", advice + 1), std::string::npos) << what;
  // To wait for a set that will vote is to wait: no outage, however little of that is borne.
  EXPECT_TRUE(c.mutex("orders").try_acquire(patience));
}

TEST(RedlockAmnesia, InitLetsEveryNodeVoteAtOnce) {
  redlock_nodes set{3, {.init = false}};
  const auto all_vote = [&] { return votes(set, 0) && votes(set, 1) && votes(set, 2); };
  ASSERT_TRUE(redlock::init(set.url()));
  EXPECT_TRUE(all_vote());
  EXPECT_TRUE(redlock::init(set.url())) << "nothing to do";
  (void)set[1].command({"FLUSHALL"});
  empty_by_restart(set[0]);
  ASSERT_FALSE(all_vote());
  const auto again = redlock::init(set.url());
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_TRUE(all_vote());
}

// Somebody is wrong about that nothing is held; tokens stay in order all the same.
TEST(RedlockAmnesia, InitBeginsAboveEveryTokenThatNodesBelieved) {
  redlock_nodes set{3};
  stepped_clock fast;
  fast.step_wall_clock(25s);
  holder_process ahead{set.url(), "orders", 60'000ms, fast.environment()};
  ahead.await_held();
  for (std::size_t i = 0; i < 3; ++i)
    (void)set[i].command({"FLUSHALL"});
  ASSERT_TRUE(redlock::init(set.url()));
  client c{set.url()};
  const auto second = c.mutex("orders").try_acquire(patience);
  ASSERT_TRUE(second) << "a second holder, as the person was warned";
  EXPECT_GT(second->token(), ahead.token());
}

TEST(RedlockAmnesia, InitNeedsEveryNode) {
  redlock_nodes set{3};
  set[0].kill9();
  const auto said = redlock::init(set.url());
  ASSERT_FALSE(said);
  EXPECT_EQ(said.error().code, errc::store_unreachable);
}

// Whatever happens to the nodes: as long as a majority answers, the set serves again by itself.
struct outage {
  const char* name;
  std::function<void(redlock_nodes&)> happens;
};
void PrintTo(const outage& one, std::ostream* to) { *to << one.name; }

class RedlockOutage : public testing::TestWithParam<outage> {};

TEST_P(RedlockOutage, SetComesBackByItselfWithHigherTokens) {
  redlock_nodes set{3, {.node = {.config = {"appendonly yes"}}, .query = short_waits.query}};
  fencing_token last{0};
  {
    client before{set.url(), {.lock = {.ttl = 1'000ms}}};
    last = before.mutex("orders").acquire().token();
  }
  GetParam().happens(set);
  client c{set.url(), impatient};
  const auto next = c.mutex("orders").try_acquire(patience);
  ASSERT_TRUE(next);
  EXPECT_GT(next->token(), last);
}

INSTANTIATE_TEST_SUITE_P(
    All, RedlockOutage,
    testing::Values(outage{"AllRestartedWithData",
                           [](auto& set) {
                             for (std::size_t i = 0; i < 3; ++i) {
                               set[i].stop_process();
                               set[i].restart();
                             }
                           }},
                    outage{"AllRestartedEmpty",
                           [](auto& set) {
                             for (std::size_t i = 0; i < 3; ++i) {
                               (void)set[i].command({"FLUSHALL"});
                               set[i].stop_process();
                               set[i].restart();
                             }
                           }},
                    outage{"OneDeadAndOneRestarted",
                           [](auto& set) {
                             set[0].kill9();
                             empty_by_restart(set[1]);
                           }},
                    outage{"TwoRestarted",
                           [](auto& set) {
                             empty_by_restart(set[0]);
                             empty_by_restart(set[2]);
                           }},
                    outage{"OneFlushed", [](auto& set) { (void)set[1].command({"FLUSHALL"}); }},
                    outage{"TwoFlushed",
                           [](auto& set) {
                             (void)set[0].command({"FLUSHALL"});
                             (void)set[1].command({"FLUSHALL"});
                           }},
                    outage{"AllFlushed",
                           [](auto& set) {
                             for (std::size_t i = 0; i < 3; ++i)
                               (void)set[i].command({"FLUSHALL"});
                           }}),
    [](const auto& one) { return one.param.name; });

// A client whose clock was as far ahead as nodes believe: nobody remembers its token, nor does any
// clock that is right reach it.
TEST(RedlockAmnesia, SetThatForgotGoesOnAboveTokensAheadOfItsClocks) {
  redlock_nodes set{3, short_waits};
  stepped_clock fast;
  fast.step_wall_clock(25s);
  fencing_token last{0};
  {
    holder_process ahead{set.url(), "orders", 1'000ms, fast.environment()};
    ahead.await_held();
    last = ahead.token();
  }
  for (std::size_t i = 0; i < 3; ++i)
    (void)set[i].command({"FLUSHALL"});
  client c{set.url(), impatient};
  auto held = c.mutex("orders").try_acquire(patience);
  ASSERT_TRUE(held);
  EXPECT_GT(held->token(), last);
  // And on from there: a client that saw the token is not taken for one that is ahead.
  ASSERT_TRUE(held->release());
  EXPECT_GT(c.mutex("orders").acquire().token(), held->token());
}

// As cron jobs do that skip their work if the lock is taken.
TEST(RedlockAmnesia, ClientsThatLiveForAMomentLetNodesIn) {
  redlock_nodes set{3, short_waits};
  for (std::size_t i = 0; i < 3; ++i)
    empty_by_restart(set[i]);
  EXPECT_TRUE(eventually([&] {
    bool served = false;
    (void)thrown_by([&] {
      served = client{set.url(), impatient}.mutex("orders").try_acquire().has_value();
    });
    return served;
  }));
}

TEST(RedlockAmnesia, LooksChangeNothing) {
  redlock_nodes set{3};
  (void)set[0].command({"FLUSHALL"});
  ASSERT_TRUE(redlock::status(set.url()));
  EXPECT_EQ(set[0].command({"DBSIZE"}), "0");
  const auto elsewhere = redlock::status(set.url_with("epoch=7"));
  ASSERT_TRUE(elsewhere);
  EXPECT_EQ(set[0].command({"DBSIZE"}), "0");
}

// A client with another list uses the node as well. It belongs to the set that lets it in.
TEST(RedlockAmnesia, EmptiedNodeIsNotCapturedByAClientOfAnotherSet) {
  redlock_nodes set{3, short_waits};
  client wrong{set.url_with(short_waits.query + "&epoch=7"), impatient};
  (void)set[0].command({"FLUSHALL"});
  for (int i = 0; i < 5; ++i) {
    (void)thrown_by([&] { EXPECT_FALSE(wrong.mutex("orders").try_acquire(500ms)); });
  }
  client right{set.url(), {.lock = {.ttl = 1'000ms}}};
  EXPECT_TRUE(eventually([&] {
    { const lease used = right.mutex("orders").acquire(); }
    return votes(set, 0);
  }));
  EXPECT_NE(thrown_by([&] { static_cast<void>(wrong.mutex("orders").try_acquire()); }), errc{});
}

}  // namespace holdfast::test
