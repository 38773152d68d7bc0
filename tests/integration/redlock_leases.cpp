// Leases on a majority: kept, extended, given back, slept through; each beside a naive Redlock that
// it must break where there is something to break.
#include <csignal>

#include <gtest/gtest.h>

#include <holdfast/holdfast.hpp>

#include "redlock_scripts.hpp"
#include "support/holder_process.hpp"
#include "support/naive_redlock.hpp"
#include "support/open_client.hpp"
#include "support/proxied_redlock.hpp"
#include "support/watch.hpp"

using namespace std::chrono_literals;

namespace holdfast::test {

namespace {

// What the requests of each kind contain, once the nodes know the scripts.
const std::string renews{stores::redlock::scripts::extend.sha1};
const std::string releases{stores::redlock::scripts::release.sha1};
const std::string acquire_mark = "label=marked";

void know_how_to_extend(redlock_nodes& set) {
  const std::string source{stores::redlock::scripts::extend.source};
  for (std::size_t i = 0; i < set.size(); ++i)
    ASSERT_EQ(set[i].command({"SCRIPT", "LOAD", source}), renews);
}

std::chrono::milliseconds pttl(const redis_server& node, const std::string& key) {
  return std::chrono::milliseconds{std::stoll(node.command({"PTTL", key}))};
}

}  // namespace

// Scenario H.
TEST(RedlockLeases, NaiveHolderThatSleptStillBelievesInItsLease) {
  redlock_nodes set{3};
  naive_redlock naive{set.where(), "orders"};
  ASSERT_TRUE(naive.lock(300ms));
  ASSERT_TRUE(set.await_none_holding("orders")) << "it sleeps for longer than that";
  const auto next = naive.lock(60s);
  ASSERT_TRUE(next);
  EXPECT_TRUE(naive.renew(60s)) << "the first is told that it goes on: two holders";
}

TEST(RedlockLeases, HolderThatSleptKnowsItAndIsFencedOff) {
  redlock_nodes set{3};
  holder_process sleeper{set.url(), "orders", 1'500ms};
  sleeper.child().signal(SIGSTOP);
  client c{set.url(), {.lock = {.ttl = 60'000ms}}};
  auto next = c.mutex("orders").try_acquire(patience);
  ASSERT_TRUE(next);
  fence::gate resource;
  ASSERT_TRUE(resource.accept(next->token()));
  sleeper.child().signal(SIGCONT);
  sleeper.tell("query");
  EXPECT_TRUE(sleeper.hear("query").starts_with("query lost"));
  sleeper.tell("renew");
  EXPECT_TRUE(sleeper.hear("renew").starts_with("renew lease_lost"));
  EXPECT_FALSE(resource.accept(sleeper.token())) << "if it writes all the same";
  EXPECT_TRUE(next->renew());
}

// Scenario 10.
TEST(RedlockLeases, NaiveRenewalAfterItsReleaseIsBelieved) {
  redlock_nodes set{3};
  naive_redlock naive{set.where(), "orders"};
  const auto first = naive.lock(60s);
  ASSERT_TRUE(first);
  naive.unlock(*first);
  ASSERT_TRUE(naive.lock(60s));
  EXPECT_TRUE(naive.renew(60s)) << "what was released is renewed: two holders";
}

TEST(RedlockLeases, RenewalThatRacesTheReleaseIsNoLossAndBringsNothingBack) {
  proxied_redlock set{3};
  know_how_to_extend(set.servers);
  const auto seen = std::make_shared<recorder>();
  client c = set.warm_client({.lock = {.ttl = 3'000ms}, .observer = seen});
  lease held = c.mutex("orders").acquire();
  watched_token lost{held.lost()};
  ASSERT_TRUE(set.servers.await_all_holding("orders"));
  for (std::size_t i = 0; i < 3; ++i)
    set[i].inject(fault::hold_request, renews);
  for (std::size_t i = 0; i < 3; ++i)
    ASSERT_TRUE(set[i].await_faults(1));
  ASSERT_TRUE(held.release());
  ASSERT_TRUE(set.servers.await_none_holding("orders"));
  std::vector<std::uint64_t> scripts_run;
  std::vector<std::size_t> renewals;
  for (std::size_t i = 0; i < 3; ++i) {
    scripts_run.push_back(set.servers[i].calls_of("evalsha"));
    renewals.push_back(set[i].seen(renews));
  }
  for (std::size_t i = 0; i < 3; ++i)
    set[i].let_go();
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_TRUE(eventually([&] { return set.servers[i].calls_of("evalsha") > scripts_run[i]; }));
  }
  let_pass(2'000ms);  // the next renewal would have come
  for (std::size_t i = 0; i < 3; ++i)
    EXPECT_EQ(set[i].seen(renews), renewals[i]) << "none after the release";
  EXPECT_EQ(set.servers.holding("orders"), 0U) << "and none that brings the lock back";
  EXPECT_FALSE(lost.has_fired());
  EXPECT_EQ(seen->count(event::kind::lost), 0U);
  EXPECT_EQ(c.counters().losses, 0U);
}

// A renewal is under way when the lease is detached, and answered after its new owner gave it back.
TEST(RedlockLeases, DetachedLeaseIsNotBroughtBack) {
  proxied_redlock set{3, "node_timeout=5000"};
  know_how_to_extend(set.servers);
  client c = set.warm_client({.lock = {.ttl = 3'000ms}});
  lease held = c.mutex("orders").acquire();
  ASSERT_TRUE(set.servers.await_all_holding("orders"));
  (void)set.servers[1].command({"DEL", "orders"});
  for (std::size_t i = 0; i < 3; ++i)
    set[i].inject(fault::hold_reply, renews);
  for (std::size_t i = 0; i < 3; ++i)
    ASSERT_TRUE(set[i].await_faults(1));
  (void)held.detach();
  for (std::size_t i = 0; i < 3; ++i)
    (void)set.servers[i].command({"DEL", "orders"});
  for (std::size_t i = 0; i < 3; ++i)
    set[i].let_go();
  let_pass(500ms);  // two of three renewed it, so that the third would be given it again
  EXPECT_EQ(set.servers.holding("orders"), 0U);
}

// Scenario 11.
TEST(RedlockLeases, NaiveRenewalWithAShorterTtlShortensTheLease) {
  redlock_nodes set{3};
  naive_redlock naive{set.where(), "orders"};
  ASSERT_TRUE(naive.lock(60s));
  EXPECT_TRUE(naive.renew(1s));
  EXPECT_LE(pttl(set[0], "orders"), 1s) << "the outer holder was promised a minute";
}

TEST(RedlockLeases, InnerUserWithAShorterTtlDoesNotShortenTheLease) {
  redlock_nodes set{3};
  client outer{set.url(), {.lock = {.ttl = 60'000ms, .renew = false}}};
  client inner{set.url(), {.lock = {.ttl = 1'000ms, .renew = false}}};
  const lease held = outer.mutex("orders").acquire();
  ASSERT_TRUE(set.await_all_holding("orders"));
  lease nested = inner.mutex("orders").adopt({"orders", std::string{held.owner()}, held.token()});
  EXPECT_TRUE(nested.renew());
  EXPECT_EQ(nested.token(), held.token());
  (void)nested.detach();
  for (std::size_t i = 0; i < 3; ++i)
    EXPECT_GT(pttl(set[i], "orders"), 30s) << "node " << i;
}

// Scenario 12.
TEST(RedlockLeases, NaiveRenewalWithNoTimeDeletesTheKeyAndSaysRenewed) {
  redlock_nodes set{3};
  naive_redlock naive{set.where(), "orders"};
  ASSERT_TRUE(naive.lock(60s));
  EXPECT_TRUE(naive.renew(0ms));
  EXPECT_EQ(set.holding("orders"), 0U);
}

TEST(RedlockLeases, NodesRefuseToExtendByNoTimeOrByMoreThanMaxTtl) {
  redlock_nodes set{1};
  client c{set.url(), {.lock = {.ttl = 60'000ms, .renew = false}}};
  const lease held = c.mutex("orders").acquire();
  const std::string record = "holdfast:{redlock}:node";
  const std::string source{stores::redlock::scripts::extend.source};
  const auto config = set[0].command({"HGET", record, "config"});
  const auto run_id = set[0].info("server", "run_id");
  for (const char* ttl : {"0", "-1", "", "abc", "60001"}) {
    const auto answer = set[0].command(
        {"EVAL", source, "2", record, "orders", config, std::string{held.owner()}, ttl, run_id});
    EXPECT_NE(answer.find("ttl"), std::string::npos) << ttl << ": " << answer;
    EXPECT_GT(pttl(set[0], "orders"), 30s) << ttl;
  }
}

// Scenario 13. What a naive client leaves behind: RedlockNetwork.LostRepliesLeaveANaiveClients….
TEST(RedlockLeases, AcquireThatWasAskedAgainIsFreedByOneRelease) {
  proxied_redlock set{3, "node_timeout=200"};
  client c = set.warm_client(
      {.lock = {.ttl = 60'000ms, .label = "marked"}, .unreachable_limit = 30'000ms});
  for (std::size_t i = 0; i < 2; ++i)
    set[i].inject(fault::hold_reply, acquire_mark);
  auto held = c.mutex("orders").try_acquire(20s);
  ASSERT_TRUE(held) << "long before the TTL of what was granted first";
  ASSERT_TRUE(set[0].await_faults(1) && set[1].await_faults(1));
  for (std::size_t i = 0; i < 2; ++i)
    set[i].let_go();
  EXPECT_TRUE(held->renew());
  EXPECT_EQ(c.status("orders").holder.value().token, held->token());
  EXPECT_TRUE(held->release());
  EXPECT_TRUE(set.servers.await_none_holding("orders"));
}

// Scenario 14.
TEST(RedlockLeases, NaiveReleaseThatIsLateDeletesTheNextLock) {
  proxied_redlock set{3};
  naive_redlock naive{set.where(), "orders"};
  const auto first = naive.lock(3'000ms);
  ASSERT_TRUE(first);
  for (std::size_t i = 0; i < 3; ++i)
    set[i].inject(fault::hold_and_cut, "DEL");
  naive.unlock(*first);
  ASSERT_TRUE(set.servers.await_none_holding("orders")) << "expired";
  ASSERT_TRUE(naive.lock(60s));
  for (std::size_t i = 0; i < 3; ++i)
    set[i].let_go();
  EXPECT_TRUE(set.servers.await_none_holding("orders")) << "the new lock is gone";
}

TEST(RedlockLeases, ReleaseThatIsSentAgainLeavesTheNextLockAlone) {
  proxied_redlock set{3};
  client c = set.warm_client({.lock = {.ttl = 60'000ms, .label = "marked"}});
  for (std::size_t i = 0; i < 3; ++i)
    set[i].forget();
  {
    const lease first = c.mutex("orders").acquire();
    ASSERT_TRUE(set.servers.await_all_holding("orders"));
    for (std::size_t i = 0; i < 3; ++i)
      set[i].inject(fault::hold_and_cut, releases);
  }  // its destructor sends the release, which is on its way for long
  for (std::size_t i = 0; i < 3; ++i)
    ASSERT_TRUE(set[i].await_request(releases, 2)) << "sent again, on a new connection";
  lease again = c.mutex("orders").acquire();
  ASSERT_TRUE(set.servers.await_all_holding("orders"));
  std::vector<std::uint64_t> scripts_run;
  for (std::size_t i = 0; i < 3; ++i)
    scripts_run.push_back(set.servers[i].calls_of("evalsha"));
  for (std::size_t i = 0; i < 3; ++i)
    set[i].let_go();
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_TRUE(eventually([&] { return set.servers[i].calls_of("evalsha") > scripts_run[i]; }));
  }
  EXPECT_EQ(set.servers.holding("orders"), 3U) << "the first one has come at last";
  EXPECT_TRUE(again.renew());
  EXPECT_TRUE(again.release());
  EXPECT_TRUE(set.servers.await_none_holding("orders"));
}

// A majority confirmed the release. The node whose connection was cut must be freed all the same.
TEST(RedlockLeases, ExplicitReleaseIsSentAgainToTheNodeThatWasCutOff) {
  proxied_redlock set{3};
  client c = set.warm_client({.lock = {.ttl = 60'000ms, .renew = false}});
  lease held = c.mutex("orders").acquire();
  ASSERT_TRUE(set.servers.await_all_holding("orders"));
  set[0].forget();
  set[0].inject(fault::cut_before_send, releases);
  EXPECT_TRUE(held.release());
  EXPECT_TRUE(set[0].await_faults(1));
  EXPECT_TRUE(set.servers.await_none_holding("orders")) << "long before its TTL";
}

// Scenario 16: requests arrive, replies do not.
TEST(RedlockLeases, LockThatWasGrantedUnheardIsTakenBackUnheard) {
  proxied_redlock set{3, "node_timeout=200"};
  client c =
      set.warm_client({.lock = {.ttl = 60'000ms, .label = "marked"}, .unreachable_limit = 1ms});
  for (std::size_t i = 0; i < 2; ++i)
    set[i].stall_replies(true);
  EXPECT_NE(thrown_by([&] { static_cast<void>(c.mutex("orders").try_acquire()); }), errc{});
  for (std::size_t i = 0; i < 2; ++i)
    EXPECT_TRUE(set[i].await_request(acquire_mark));
  EXPECT_TRUE(set.servers.await_none_holding("orders")) << "long before its TTL";
}

TEST(RedlockLeases, HolderThatHearsNoRepliesStopsBeforeTheNodesLetGo) {
  proxied_redlock set{3, "node_timeout=200"};
  client c = set.warm_client({.lock = {.ttl = 3'000ms}});
  lease held = c.mutex("orders").acquire();
  watched_token lost{held.lost()};
  ASSERT_TRUE(set.servers.await_all_holding("orders"));
  for (std::size_t i = 0; i < 2; ++i)
    set[i].stall_replies(true);
  ASSERT_TRUE(lost.wait());
  EXPECT_GE(set.servers.holding("orders"), 2U);
  EXPECT_EQ(held.why_lost(), loss::expired);
}

}  // namespace holdfast::test
