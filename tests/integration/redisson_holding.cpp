// Leases on locks of Redisson's layout: re-entry, renewal, loss, and replies that are lost.
#include <mutex>
#include <thread>

#include "support/proxied_redis.hpp"

using namespace std::chrono_literals;
using redisson_lock = holdfast::redisson::rlock;

namespace holdfast::test {
namespace {

const std::string r_asks{stores::redis::scripts::redisson_acquire.sha1};
const std::string r_releases{stores::redis::scripts::redisson_release.sha1};
const std::string r_renews{stores::redis::scripts::redisson_renew.sha1};
const std::string java = "0f8fad5b-d9cb-469f-a165-70867728950e:47";

class RedissonHolding : public proxied_redis {
 protected:
  void SetUp() override {
    proxied_redis::SetUp();
    namespace scripts = stores::redis::scripts;
    for (const auto* script :
         {&scripts::redisson_acquire, &scripts::redisson_release, &scripts::redisson_renew}) {
      ASSERT_EQ(server.command({"SCRIPT", "LOAD", std::string{script->source}}), script->sha1);
    }
  }
  [[nodiscard]] std::string field() const { return server.command({"HKEYS", "orders"}); }
};

// ---- re-entry ----------------------------------------------------------------------------------

TEST_F(RedissonHolding, ReentryCostsNothingAndOnlyTheLastUnlockReleases) {
  client c = direct();
  redisson_lock orders{c, "orders"};
  orders.lock();
  const auto before = scripts_run();
  const auto mine = field();
  {
    const std::scoped_lock again{orders};
    ASSERT_TRUE(orders.try_lock());
    ASSERT_TRUE(orders.try_lock_for(1s));
    EXPECT_EQ(orders.holds(), 4U);
    orders.unlock();
    orders.unlock();
  }
  EXPECT_EQ(scripts_run(), before);
  EXPECT_EQ(field(), mine);
  EXPECT_EQ(server.command({"HGET", "orders", mine}), "1");
  EXPECT_EQ(orders.holds(), 1U);
  orders.unlock();
  EXPECT_EQ(orders.holds(), 0U);
  EXPECT_TRUE(eventually([&] { return !exists("orders"); }));
}

TEST_F(RedissonHolding, OwnerIsTheThread) {
  client c = direct();
  redisson_lock orders{c, "orders"};
  const std::scoped_lock mine{orders};
  std::thread{[&] {
    redisson_lock same{c, "orders"};
    EXPECT_FALSE(same.try_lock());
    EXPECT_EQ(same.holds(), 0U);
    EXPECT_EQ(same.current(), nullptr);
  }}.join();
  EXPECT_NE(orders.current(), nullptr);
}

TEST_F(RedissonHolding, CopiesAndOtherHandlesShareTheHolds) {
  client c = direct();
  redisson_lock one{c, "orders"};
  redisson_lock other{c, "orders"};
  one.lock();
  other.lock();
  EXPECT_EQ(one.holds(), 2U);
  one.unlock();
  EXPECT_TRUE(exists("orders"));
  other.unlock();
  EXPECT_TRUE(eventually([&] { return !exists("orders"); }));
}

TEST_F(RedissonHolding, LockingAgainAfterALossThrowsUntilAllIsUnlocked) {
  client c = direct({.lock = {.ttl = 3s}});
  redisson_lock orders{c, "orders"};
  orders.lock();
  watched_token lost{orders.current()->lost()};
  ASSERT_EQ(server.command({"DEL", "orders"}), "1");
  ASSERT_TRUE(lost.wait());
  EXPECT_EQ(thrown_by([&] { orders.lock(); }), errc::lease_lost);
  EXPECT_EQ(thrown_by([&] { (void)orders.try_lock(); }), errc::lease_lost);
  orders.unlock();
  orders.lock();
  EXPECT_EQ(orders.holds(), 1U);
  orders.unlock();
}

TEST_F(RedissonHolding, UnlockWithoutLockIsToldToTheObserver) {
  const auto seen = std::make_shared<recorder>();
  client c = direct({.observer = seen});
  redisson_lock orders{c, "orders"};
  orders.unlock();
  EXPECT_EQ(seen->count(event::kind::misuse), 1U);
}

// ---- renewal and loss --------------------------------------------------------------------------

TEST_F(RedissonHolding, IsRenewedAtAThirdOfItsTtl) {
  const auto seen = std::make_shared<recorder>();
  client c = direct({.lock = {.ttl = 1500ms}, .observer = seen});
  redisson_lock orders{c, "orders"};
  const lease held = orders.acquire();
  ASSERT_TRUE(seen->await(event::kind::renewed, 4));
  EXPECT_TRUE(held.held());
  EXPECT_GT(pttl("orders"), 400ms);
  EXPECT_EQ(c.counters().losses, 0U);
}

TEST_F(RedissonHolding, IsRenewedTogetherWithMutexes) {
  const auto seen = std::make_shared<recorder>();
  client c = direct({.lock = {.ttl = 1500ms}, .observer = seen});
  const lease native = c.mutex("native").acquire();
  redisson_lock orders{c, "orders"};
  const lease held = orders.acquire();
  holdfast::redisson::rfenced_lock fenced{c, "fenced"};
  const lease counted = fenced.acquire();
  ASSERT_TRUE(seen->await(event::kind::renewed, 12));
  EXPECT_TRUE(native.held() && held.held() && counted.held());
  EXPECT_EQ(c.counters().renewal_failures, 0U);
}

TEST_F(RedissonHolding, DeletedLockIsLostAndNotBroughtBack) {
  client c = direct({.lock = {.ttl = 3s}});
  redisson_lock orders{c, "orders"};
  lease held = orders.acquire();
  watched_token lost{held.lost()};
  ASSERT_EQ(server.command({"DEL", "orders"}), "1");
  ASSERT_TRUE(lost.wait());
  EXPECT_EQ(held.why_lost(), loss::deleted);
  EXPECT_FALSE(exists("orders"));
}

TEST_F(RedissonHolding, TakenLockIsLostAndLeftToItsNewOwner) {
  client c = direct({.lock = {.ttl = 3s}});
  redisson_lock orders{c, "orders"};
  lease held = orders.acquire();
  watched_token lost{held.lost()};
  ASSERT_EQ(server.command({"DEL", "orders"}), "1");
  ASSERT_EQ(server.command({"HSET", "orders", java, "1"}), "1");
  ASSERT_EQ(server.command({"PEXPIRE", "orders", "60000"}), "1");
  ASSERT_TRUE(lost.wait());
  EXPECT_EQ(held.why_lost(), loss::taken);
  EXPECT_FALSE(held.release());
  EXPECT_EQ(server.command({"HGET", "orders", java}), "1") << "a release is for its own hold only";
  EXPECT_GT(pttl("orders"), 50s);
}

// redisson/redisson#7272: a watchdog that goes on after the unlock keeps the next holder's lock, or
// brings back its own.
TEST_F(RedissonHolding, RenewalThatArrivesAfterTheUnlockDoesNothing) {
  const auto seen = std::make_shared<recorder>();
  client c = through_proxy({.lock = {.ttl = 3s}, .observer = seen});
  redisson_lock orders{c, "orders"};
  lease held = orders.acquire();
  proxy.inject(fault::hold_request, r_renews);
  ASSERT_TRUE(proxy.await_faults(1));
  ASSERT_TRUE(held.release());
  ASSERT_EQ(server.command({"HSET", "orders", java, "1"}), "1");
  ASSERT_EQ(server.command({"PEXPIRE", "orders", "2000"}), "1");
  const auto calls = scripts_run();
  proxy.let_go();
  ASSERT_TRUE(eventually([&] { return scripts_run() > calls; }));
  EXPECT_LE(pttl("orders"), 2s) << "the next holder's TTL is its own";
  EXPECT_TRUE(eventually([&] { return !exists("orders"); }));
  EXPECT_EQ(seen->count(event::kind::lost), 0U);
}

TEST_F(RedissonHolding, DetachedLeaseIsAdopted) {
  client c = direct();
  redisson_lock orders{c, "orders"};
  const auto ticket = orders.acquire().detach();
  client other = direct();
  lease held = redisson_lock{other, "orders"}.adopt(ticket);
  EXPECT_TRUE(held.held());
  EXPECT_TRUE(held.release());
  EXPECT_FALSE(exists("orders"));
}

// ---- replies that are lost ---------------------------------------------------------------------

TEST_F(RedissonHolding, RetriedAcquireIsOneHold) {
  client c = through_proxy({.operation_timeout = 400ms});
  redisson_lock orders{c, "orders"};
  proxy.inject(fault::swallow_reply, r_asks);
  lease held = orders.acquire();
  EXPECT_EQ(proxy.seen(r_asks), 2U);
  EXPECT_EQ(server.command({"HVALS", "orders"}), "1");
  EXPECT_TRUE(held.release());
  EXPECT_FALSE(exists("orders"));
}

// The latch holds the answer: that of the first release, which freed it.
TEST_F(RedissonHolding, RetriedUnlockKnowsThatItWasHeldToTheEnd) {
  client c = through_proxy({.operation_timeout = 400ms});
  redisson_lock orders{c, "orders"};
  (void)orders.acquire().release();
  lease held = orders.acquire();
  proxy.forget();
  proxy.inject(fault::swallow_reply, r_releases);
  const auto said = held.release();
  EXPECT_TRUE(said) << said.error().message;
  EXPECT_EQ(proxy.seen(r_releases), 2U);
  EXPECT_FALSE(exists("orders"));
}

TEST_F(RedissonHolding, RetriedUnlockLeavesTheNextHolderAlone) {
  client c = through_proxy({.operation_timeout = 400ms});
  redisson_lock orders{c, "orders"};
  lease held = orders.acquire();
  proxy.inject(fault::swallow_reply, r_releases);
  std::thread taker{[&] {
    ASSERT_TRUE(eventually([&] { return !exists("orders"); }));
    ASSERT_EQ(server.command({"HSET", "orders", java, "1"}), "1");
  }};
  const auto said = held.release();
  taker.join();
  EXPECT_TRUE(said);
  EXPECT_EQ(server.command({"HGET", "orders", java}), "1");
}

TEST_F(RedissonHolding, UnansweredAcquireIsTakenBack) {
  client c =
      through_proxy({.lock = {.ttl = 60s}, .operation_timeout = 400ms, .unreachable_limit = 1s});
  redisson_lock orders{c, "orders"};
  proxy.inject(fault::swallow_reply, r_asks, 1000);
  EXPECT_NE(thrown_by([&] { (void)orders.acquire(); }), errc{});
  EXPECT_TRUE(eventually([&] { return !exists("orders"); })) << "long before its TTL";
}

// 15: the first ask arrives when its lease was given back already.
TEST_F(RedissonHolding, LateAskDoesNotOutliveItsRelease) {
  client c = through_proxy({.lock = {.ttl = 60s}, .operation_timeout = 400ms});
  redisson_lock orders{c, "orders"};
  proxy.inject(fault::hold_request, r_asks);
  lease held = orders.acquire();
  ASSERT_TRUE(held.release());
  proxy.let_go();
  let_pass(100ms);
  EXPECT_TRUE(eventually([&] { return !exists("orders"); }));
}

TEST_F(RedissonHolding, KilledServersLocksAreAskedForAnew) {
  client c = direct({.lock = {.ttl = 3s}});
  redisson_lock orders{c, "orders"};
  lease held = orders.acquire();
  watched_token lost{held.lost()};
  server.kill9();
  server.restart();
  ASSERT_TRUE(lost.wait());
  lease again = orders.acquire(20s);
  EXPECT_TRUE(again.held());
}

}  // namespace
}  // namespace holdfast::test
