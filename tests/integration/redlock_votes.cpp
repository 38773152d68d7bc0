// What a majority decides: tokens, repair, who may vote together.
#include <gtest/gtest.h>

#include <holdfast/holdfast.hpp>

#include "stores/redis/layout.hpp"
#include "support/naive_redlock.hpp"
#include "support/open_client.hpp"
#include "support/redlock_nodes.hpp"
#include "support/stepped_clock.hpp"
#include "support/watch.hpp"

using namespace std::chrono_literals;

namespace holdfast::test {

namespace {

constexpr auto record = "holdfast:{redlock}:node";

}  // namespace

// Scenario 25. A vote reads the lock in a way that does not tell another type from nothing.
TEST(RedlockVotes, KeyOfAnotherTypeIsAClearErrorAndIsLeftAlone) {
  redlock_nodes set{3};
  client c{set.url()};
  for (std::size_t i = 0; i < set.size(); ++i)
    (void)set[i].command({"HSET", "orders", "field", "value"});
  std::string what;
  EXPECT_EQ(thrown_by([&] { (void)c.mutex("orders").acquire(); }, &what), errc::wrong_type);
  EXPECT_NE(what.find("not a lock"), std::string::npos) << what;
  for (std::size_t i = 0; i < set.size(); ++i)
    EXPECT_EQ(set[i].command({"HGET", "orders", "field"}), "value");
}

// Nobody has it there, so it was lost; and what is there now is left alone.
TEST(RedlockVotes, LockReplacedByAnotherTypeIsALossToItsRelease) {
  redlock_nodes set{3};
  client c{set.url(), {.lock = {.ttl = 60s}}};
  lease held = c.mutex("orders").acquire();
  ASSERT_TRUE(set.await_all_holding("orders"));
  for (std::size_t i = 0; i < set.size(); ++i) {
    (void)set[i].command({"DEL", "orders"});
    (void)set[i].command({"HSET", "orders", "field", "value"});
  }
  const auto said = held.release();
  ASSERT_FALSE(said);
  EXPECT_EQ(said.error().code, errc::lease_lost) << said.error().message;
  for (std::size_t i = 0; i < set.size(); ++i)
    EXPECT_EQ(set[i].command({"HGET", "orders", "field"}), "value");
}

// Scenario 27.
TEST(RedlockVotes, NodeThatLostTheKeyIsRepairedByRenewal) {
  redlock_nodes set{3};
  client c{set.url(), {.lock = {.ttl = 2'100ms}}};
  const lease held = c.mutex("orders").acquire();
  ASSERT_TRUE(set.await_all_holding("orders"));
  const auto value = set[0].command({"GET", "orders"});
  (void)set[1].command({"DEL", "orders"});
  EXPECT_TRUE(eventually([&] { return set[1].command({"GET", "orders"}) == value; }));
  EXPECT_TRUE(held.held());
}

// The counterexample of models/redlock_renew.pml: repaired there, a lease that was interrupted
// would live on beside its successor's higher token, and its holder would not hear of it.
TEST(RedlockVotes, NodeThatGrantedTheLockSinceIsNotRepaired) {
  redlock_nodes set{3};
  client c{set.url(), {.lock = {.ttl = 60'000ms}}};
  lease held = c.mutex("orders").acquire();
  ASSERT_TRUE(set.await_all_holding("orders"));
  // Another attempt was granted it here with a higher token, and gave it back.
  const auto record = set[2].command({"KEYS", "holdfast:*"});
  ASSERT_EQ(record.find('\n'), std::string::npos) << record;
  const auto field = "c:" + std::to_string(stores::redis::hash_slot("orders"));
  ASSERT_EQ(set[2].command({"HGET", record, field}), to_string(held.token()));
  (void)set[2].command({"HSET", record, field, to_string(fencing_token{held.token().value() + 1})});
  (void)set[2].command({"DEL", "orders"});
  EXPECT_TRUE(held.renew());
  EXPECT_TRUE(held.renew()) << "whatever the first one sent has been run";
  EXPECT_EQ(set.holding("orders"), 2U);
}

// Another counterexample of models/redlock_renew.pml: an acquire that is held up acts like a repair
// that nobody checked.
TEST(RedlockVotes, LateVoteOfANodeThatGrantedTheLockSinceDoesNotCount) {
  redlock_nodes set{3};
  client c{set.url(), {.lock = {.ttl = 60'000ms}}};
  lease first = c.mutex("orders").acquire();
  ASSERT_TRUE(eventually([&] { return set.holding("orders") == 3; }));
  const auto higher = fencing_token{first.token().value() + 30'000'000};
  ASSERT_TRUE(first.release());
  ASSERT_TRUE(eventually([&] { return set.holding("orders") == 0; }));
  // Our request to the last node is held up, and meanwhile another attempt comes there and goes.
  (void)set[2].command({"HSET", record, counter_field(set[2]), to_string(higher)});
  client d{set.url(), {.lock = {.ttl = 60'000ms}}};  // one that asks for the first time asks all
  ASSERT_FALSE(d.status("orders").holder);           // and is connected now
  set[2].pause();
  lease held = d.mutex("orders").acquire();
  set[2].resume();
  EXPECT_LT(held.token(), higher);
  ASSERT_TRUE(eventually([&] { return set.holding("orders") == 3; }));
  EXPECT_TRUE(held.renew()) << "on the two that granted it in time";
  (void)set[0].command({"DEL", "orders"});
  EXPECT_FALSE(held.renew());
}

TEST(RedlockVotes, StaleVoteCountsOnceItIsRepaired) {
  redlock_nodes set{3};
  client c{set.url(), {.lock = {.ttl = 60'000ms}}};
  lease held = c.mutex("orders").acquire();
  ASSERT_TRUE(eventually([&] { return set.holding("orders") == 3; }));
  const auto value = set[2].command({"GET", "orders"});
  auto stale = value;
  const auto at = stale.find(to_string(held.token()));
  ASSERT_NE(at, std::string::npos);
  stale.replace(at, to_string(held.token()).size(), "0");
  (void)set[2].command({"SET", "orders", stale, "KEEPTTL"});
  EXPECT_TRUE(held.renew());
  EXPECT_TRUE(eventually([&] { return set[2].command({"GET", "orders"}) == value; }));
  (void)set[0].command({"DEL", "orders"});
  EXPECT_TRUE(held.renew());
}

TEST(RedlockVotes, NaiveLockStaysOnFewerNodesWithEachOneLost) {
  redlock_nodes set{3};
  naive_redlock naive{set.where(), "orders"};
  ASSERT_TRUE(naive.lock(60s));
  (void)set[1].command({"DEL", "orders"});
  EXPECT_EQ(set.holding("orders"), 2U);
  (void)set[0].command({"DEL", "orders"});
  EXPECT_TRUE(naive.lock(60s)) << "a second holder";
}

TEST(RedlockVotes, LostMajorityIsALossAndNotRepaired) {
  redlock_nodes set{3};
  client c{set.url(), {.lock = {.ttl = 2'100ms}}};
  lease held = c.mutex("orders").acquire();
  watched_token lost{held.lost()};
  ASSERT_TRUE(set.await_all_holding("orders"));
  (void)set[0].command({"DEL", "orders"});
  (void)set[1].command({"DEL", "orders"});
  EXPECT_TRUE(lost.wait());
  EXPECT_LE(set.holding("orders"), 1U);
  EXPECT_TRUE(eventually([&] { return set.holding("orders") == 0; }))
      << "what is left on a minority is in everybody's way";
}

TEST(RedlockVotes, ReleasedLeaseIsNotRepaired) {
  redlock_nodes set{3};
  client c{set.url(), {.lock = {.ttl = 60'000ms}}};
  for (int i = 0; i < 20; ++i) {
    lease held = c.mutex("orders").acquire();
    ASSERT_TRUE(set.await_all_holding("orders"));
    (void)set[0].command({"DEL", "orders"});
    EXPECT_TRUE(held.renew());
    (void)held.release();
    ASSERT_TRUE(set.await_none_holding("orders")) << "round " << i;
  }
}

TEST(RedlockVotes, NodeThatStopsAnsweringIsNotWaitedFor) {
  redlock_nodes set{5};
  client c{set.url()};
  for (int i = 0; i < 50; ++i)
    ASSERT_TRUE(c.mutex("orders").acquire().release());
  for (std::size_t hung = 0; hung < 5; ++hung) {
    set[hung].pause();
    // Were each of them to wait for that node, this would take 100 s.
    for (int i = 0; i < 100; ++i)
      ASSERT_TRUE(c.mutex("orders").acquire().release()) << "node " << hung;
    set[hung].resume();
  }
}

// Scenario 28.
TEST(RedlockVotes, NaiveClientsWithDifferentListsBothHold) {
  redlock_nodes set{5};
  naive_redlock a{{set[0].where(), set[1].where(), set[2].where()}, "orders"};
  naive_redlock b{{set[2].where(), set[3].where(), set[4].where()}, "orders"};
  EXPECT_TRUE(a.lock(60s) && b.lock(60s));
}

TEST(RedlockVotes, ClientsWithDifferentListsAreRefusedAndBothAreNamed) {
  redlock_nodes set{3};
  redlock_nodes other{1, {.init = false}};
  const std::string mixed =
      "redlock://" + set.name(0) + "," + set.name(1) + "," + other.name(0) + "?node_timeout=1000";
  client c{mixed};
  std::string what;
  EXPECT_EQ(thrown_by([&] { static_cast<void>(c.mutex("orders").try_acquire()); }, &what),
            errc::incompatible);
  EXPECT_NE(what.find(set.name(2)), std::string::npos) << "theirs: " << what;
  EXPECT_NE(what.find(other.name(0)), std::string::npos) << "ours: " << what;
  const auto refused = redlock::init(mixed);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, errc::incompatible);
}

TEST(RedlockVotes, OrderOfTheListDoesNotMatter) {
  redlock_nodes set{3};
  client a{set.url()};
  client b{"redlock://" + set.name(2) + "," + set.name(0) + "," + set.name(1) +
           "?node_timeout=1000"};
  const lease held = a.mutex("orders").acquire();
  EXPECT_FALSE(b.mutex("orders").try_acquire());
  EXPECT_EQ(b.status("orders").holder.value().token, held.token());
}

TEST(RedlockVotes, AnotherMaxTtlOrEpochIsAnotherSet) {
  redlock_nodes set{3};
  for (const auto* query : {"max_ttl=61000&node_timeout=1000", "epoch=2&node_timeout=1000"}) {
    client c{set.url_with(query)};
    EXPECT_EQ(thrown_by([&] { static_cast<void>(c.mutex("orders").try_acquire()); }),
              errc::incompatible);
  }
}

TEST(RedlockVotes, TtlAboveMaxTtlIsRefused) {
  redlock_nodes set{3};
  client c{set.url(), {.lock = {.ttl = 61'000ms}}};
  std::string what;
  EXPECT_EQ(thrown_by([&] { (void)c.mutex("orders").acquire(); }, &what), errc::invalid_argument);
  EXPECT_NE(what.find("max_ttl"), std::string::npos) << what;
}

TEST(RedlockVotes, ClusterMembersAreRefused) {
  redlock_nodes set{1, {.node = {.config = {"cluster-enabled yes"}}, .init = false}};
  client c{set.url(), {.unreachable_limit = 1ms}};
  std::string what;
  EXPECT_EQ(thrown_by([&] { static_cast<void>(c.mutex("orders").try_acquire()); }, &what),
            errc::incompatible);
  EXPECT_NE(what.find("cluster"), std::string::npos) << what;
}

TEST(RedlockVotes, OneServerUnderTwoNamesIsRefused) {
  redlock_nodes set{1, {.init = false}};
  const auto port = std::to_string(set[0].port());
  // The same address, written differently; a bare system may not know "localhost".
  client c{"redlock://127.0.0.1:" + port + ",127.1:" + port + "?node_timeout=1000",
           {.unreachable_limit = 1ms}};
  std::string what;
  // Once both have been reached: an answer may be decided before that.
  EXPECT_TRUE(eventually([&] {
    const auto code = thrown_by([&] { static_cast<void>(c.mutex("orders").try_acquire()); }, &what);
    return code != errc{} && what.find("same server") != std::string::npos;
  })) << what;
}

TEST(RedlockVotes, OneNodeWorksAndIsWarnedOf) {
  redlock_nodes set{1};
  client c{set.url()};
  EXPECT_TRUE(c.mutex("orders").try_acquire());
  EXPECT_NE(c.guarantees().summary.find("Warning"), std::string::npos);
  EXPECT_EQ(c.guarantees().storage, guarantees::storage_kind::single);
}

TEST(RedlockVotes, EvenNumberNeedsMoreThanHalf) {
  redlock_nodes set{4, {.query = "node_timeout=500"}};
  client c{set.url(), {.unreachable_limit = 1ms}};
  EXPECT_EQ(c.guarantees().storage, guarantees::storage_kind::quorum);
  EXPECT_TRUE(c.mutex("orders").try_acquire(5s));
  set[0].kill9();
  EXPECT_TRUE(c.mutex("orders").try_acquire(5s));
  set[1].kill9();
  EXPECT_NE(thrown_by([&] { static_cast<void>(c.mutex("orders").try_acquire()); }), errc{});
}

// A client that is behind proposes too little: the raise makes up for it, in the same ask.
TEST(RedlockVotes, TokensGoOnAboveCountersThatAreAheadOfTheClock) {
  redlock_nodes set{3};
  client c{set.url()};
  std::uint64_t ahead = 0;
  {
    const lease first = c.mutex("orders").acquire();
    ahead = first.token().value() + 30'000'000;
    ASSERT_TRUE(set.await_all_holding("orders"));
  }
  const auto field = counter_field(set[0]);
  ASSERT_FALSE(field.empty());
  (void)set[0].command({"HSET", record, field, std::to_string(ahead)});
  (void)set[1].command({"HSET", record, field, std::to_string(ahead + 5)});
  client fresh{set.url()};  // has seen none of it
  const lease held = fresh.mutex("orders").acquire();
  EXPECT_GT(held.token().value(), ahead);
  EXPECT_EQ(c.status("orders").holder.value().token, held.token());
  // Written where it was granted: on a majority, whichever that was.
  EXPECT_TRUE(eventually([&] {
    std::size_t with_token = 0;
    for (std::size_t i = 0; i < 3; ++i) {
      const auto value = set[i].command({"GET", "orders"});
      if (value.find("token=" + to_string(held.token()) + ";") != std::string::npos) ++with_token;
    }
    return with_token >= 2;
  }));
}

TEST(RedlockVotes, LockIsAPlainStringThatOtherClientsRespect) {
  redlock_nodes set{3};
  client c{set.url(), {.lock = {.ttl = 60'000ms}}};
  naive_redlock naive{{set[0].where(), set[1].where(), set[2].where()}, "orders"};
  {
    const lease held = c.mutex("orders").acquire();
    EXPECT_FALSE(naive.lock(60s));
    std::size_t strings = 0;
    for (std::size_t i = 0; i < 3; ++i)
      strings += set[i].command({"TYPE", "orders"}) == "string" ? 1 : 0;
    EXPECT_GE(strings, 2U) << "on a majority";
  }
  ASSERT_TRUE(set.await_none_holding("orders"));
  const auto theirs = naive.lock(60s);
  ASSERT_TRUE(theirs);
  EXPECT_FALSE(c.mutex("orders").try_acquire(100ms));
  EXPECT_TRUE(c.status("orders").holder.value().foreign);
  naive.unlock(*theirs);
  EXPECT_TRUE(c.mutex("orders").try_acquire(patience));
}

// Scenario 21: one node's clock takes its key away; the majority and repair make up for it.
TEST(RedlockVotes, ClockOfOneNodeThatJumpsTakesNothing) {
  stepped_clock clock;
  redlock_nodes set{2, {.init = false}};
  auto odd_options = clock.on({.tcp = true});
  redis_server odd{odd_options};
  const std::string url = "redlock://" + set.name(0) + "," + set.name(1) +
                          ",127.0.0.1:" + std::to_string(odd.port()) + "?node_timeout=1000";
  ASSERT_TRUE(redlock::init(url, 20s));
  const auto seen = std::make_shared<recorder>();
  client c{url, {.lock = {.ttl = 2'100ms}, .observer = seen}};
  const lease held = c.mutex("orders").acquire();
  ASSERT_TRUE(eventually([&] { return odd.command({"EXISTS", "orders"}) == "1"; }));
  ASSERT_TRUE(seen->await(event::kind::renewed));
  clock.step_wall_clock(1h);
  EXPECT_TRUE(seen->await(event::kind::clock_stepped));
  EXPECT_TRUE(held.held());
  EXPECT_TRUE(eventually([&] { return odd.command({"EXISTS", "orders"}) == "1"; }));
}

// Nodes whose clock is an hour behind do not believe a proposal of now: they grant, leave their
// counters where they are, and are raised by one. Nobody is refused, whatever the counters.
TEST(RedlockVotes, ProposalFarAheadOfTheNodesIsGrantedAndNotBelieved) {
  stepped_clock clock;
  redlock_nodes set{3, {.node = clock.on()}};
  client c{set.url()};
  const auto first = c.mutex("orders").acquire().token().value();
  auto before = first;
  clock.step_wall_clock(-1h);
  client other{set.url()};  // has seen none of it
  for (int i = 0; i < 3; ++i) {
    const auto unknown = other.mutex("stock").try_acquire(patience);
    ASSERT_TRUE(unknown);
    const auto ours = c.mutex("orders").try_acquire(patience);
    ASSERT_TRUE(ours);
    EXPECT_GT(ours->token().value(), before);
    before = ours->token().value();
  }
  EXPECT_LT(before, first + 100) << "a proposal that is not believed carries no counter away";
}

}  // namespace holdfast::test
