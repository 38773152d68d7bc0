// What rlock puts on the wire, beside a Java program played by hand: keys, fields, TTLs, messages.
// The real Redisson is met in tests/interop.
#include <future>
#include <mutex>
#include <thread>

#include <gmock/gmock.h>

#include "support/proxied_redis.hpp"

using namespace std::chrono_literals;
using redisson_lock = holdfast::redisson::rlock;
using redisson_fenced_lock = holdfast::redisson::rfenced_lock;

namespace holdfast::test {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

const std::string channel = "redisson_lock__channel:{orders}";
const std::string java = "0f8fad5b-d9cb-469f-a165-70867728950e:47";

class RedissonWire : public proxied_redis {
 protected:
  [[nodiscard]] std::string field() const { return server.command({"HKEYS", "orders"}); }
  void java_locks(const std::string& ttl = "30000", const std::string& who = java) const {
    ASSERT_EQ(server.command({"HINCRBY", "orders", who, "1"}), "1");
    ASSERT_EQ(server.command({"PEXPIRE", "orders", ttl}), "1");
  }
  void java_unlocks() const {
    ASSERT_EQ(server.command({"DEL", "orders"}), "1");
    (void)server.command({"PUBLISH", channel, "0"});
  }
  [[nodiscard]] bool someone_listens() const {
    return server.command({"PUBSUB", "NUMSUB", channel}) == channel + "\n1";
  }
};

// Reads one channel, as Redisson does.
class listener {
 public:
  explicit listener(const redis_server& at) : link_{at.where(), 5s} {
    (void)link_.command({"SUBSCRIBE", channel});
  }
  [[nodiscard]] std::string next() { return link_.receive().shown(); }

 private:
  raw_redis link_;
};

TEST_F(RedissonWire, HoldsAHashWithOneFieldOnceAndATtl) {
  client c = direct();
  redisson_lock orders{c, "orders"};
  lease held = orders.acquire();
  EXPECT_EQ(server.command({"TYPE", "orders"}), "hash");
  EXPECT_EQ(server.command({"HLEN", "orders"}), "1");
  EXPECT_EQ(server.command({"HVALS", "orders"}), "1");
  EXPECT_THAT(field(), StartsWith(std::string{held.owner()} + ";"));
  EXPECT_LE(pttl("orders"), 30s);
  EXPECT_GT(pttl("orders"), 25s);
  EXPECT_EQ(held.token(), fencing_token{});
  ASSERT_TRUE(held.release());
  EXPECT_FALSE(exists("orders"));
}

TEST_F(RedissonWire, ReleasePublishesZeroAndLeavesNoLatchBehind) {
  client c = direct();
  redisson_lock orders{c, "orders"};
  listener java_waits{server};
  ASSERT_TRUE(orders.acquire().release());
  EXPECT_EQ(java_waits.next(), "message\n" + channel + "\n0");
  EXPECT_TRUE(eventually([&] {
    return server.command({"KEYS", "*"}).empty();
  })) << server.command({"KEYS", "*"});
}

TEST_F(RedissonWire, ReleaseThatNobodyWaitsForPublishes) {
  client c = direct();
  redisson_lock orders{c, "orders"};
  listener java_waits{server};
  { const lease held = orders.acquire(); }
  EXPECT_EQ(java_waits.next(), "message\n" + channel + "\n0");
}

TEST_F(RedissonWire, NameWithABraceIsNotPutIntoBraces) {
  client c = direct();
  redisson_fenced_lock orders{c, "{shop}:orders"};
  const lease held = orders.acquire();
  EXPECT_EQ(server.command({"GET", "redisson_lock_token:{shop}:orders"}), "1");
}

TEST_F(RedissonWire, ForeignHolderExcludesAndIsShownByItsField) {
  client c = direct();
  redisson_lock orders{c, "orders"};
  java_locks();
  EXPECT_FALSE(orders.try_acquire());
  const auto said = orders.acquire_result(50ms);
  ASSERT_FALSE(said);
  EXPECT_EQ(said.error().code, errc::timed_out);
  ASSERT_TRUE(said.error().holder);
  EXPECT_EQ(said.error().holder->value, java);
  const auto status = orders.status();
  ASSERT_TRUE(status.holder);
  EXPECT_TRUE(status.holder->foreign);
  EXPECT_EQ(status.holder->value, java);
  EXPECT_EQ(server.command({"HGET", "orders", java}), "1") << "untouched";
}

TEST_F(RedissonWire, OurHolderIsShownWithHostAndLabel) {
  client c = direct();
  redisson_lock orders{c, "orders", {.label = "night shift"}};
  const lease held = orders.acquire();
  const auto status = orders.status();
  ASSERT_TRUE(status.holder);
  EXPECT_FALSE(status.holder->foreign);
  EXPECT_EQ(status.holder->label, "night shift");
  EXPECT_GT(status.holder->pid, 0);
}

// Long before the TTL, and before a waiter would ask by itself.
TEST_F(RedissonWire, MessageWakesAWaiter) {
  client c = direct();
  redisson_lock orders{c, "orders"};
  java_locks("60000");
  auto waits = std::async(std::launch::async, [&] {
    const lease held = orders.acquire(30s);
    return runtime::now();
  });
  ASSERT_TRUE(eventually([&] { return someone_listens(); }));
  let_pass(100ms);
  const auto released = runtime::now();
  java_unlocks();
  EXPECT_LT(waits.get() - released, 1s);
}

// What is published between the first ask and the subscription is heard by nobody: so the waiter
// asks once more.
TEST_F(RedissonWire, ReleaseBeforeTheSubscriptionIsNotMissed) {
  client c = through_proxy();
  redisson_lock orders{c, "orders"};
  java_locks("60000");
  proxy.inject(fault::hold_request, "SUBSCRIBE");
  auto waits = std::async(std::launch::async, [&] { return orders.acquire(30s).held(); });
  ASSERT_TRUE(proxy.await_faults(1));
  java_unlocks();
  const auto let_go = runtime::now();
  proxy.let_go();
  EXPECT_TRUE(waits.get());
  EXPECT_LT(runtime::now() - let_go, 1s);
}

TEST_F(RedissonWire, EachReleaseWakesOneMoreOfManyWaiters) {
  client c = direct();
  redisson_lock orders{c, "orders"};
  java_locks("60000");
  std::vector<std::future<void>> all;
  for (int i = 0; i < 8; ++i)
    all.push_back(std::async(std::launch::async, [&] { const lease held = orders.acquire(30s); }));
  ASSERT_TRUE(eventually([&] { return c.counters().waiting_now == 8; }));
  let_pass(100ms);
  const auto released = runtime::now();
  java_unlocks();
  for (auto& one : all)
    one.get();
  EXPECT_LT(runtime::now() - released, 2s) << "each passes the word on by its release";
}

// A waiter that was told and gives up does not take the word with it.
TEST_F(RedissonWire, StoppedWaiterPassesTheWordOn) {
  client c = direct();
  redisson_lock orders{c, "orders"};
  java_locks("60000");
  for (int round = 0; round < 20; ++round) {
    std::stop_source stop;
    auto first = std::async(std::launch::async,
                            [&] { return orders.try_acquire(30s, stop.get_token()).has_value(); });
    ASSERT_TRUE(eventually([&] { return c.counters().waiting_now == 1; }));
    auto second = std::async(std::launch::async, [&] { return orders.acquire(30s).held(); });
    ASSERT_TRUE(eventually([&] { return c.counters().waiting_now == 2; }));
    const auto released = runtime::now();
    java_unlocks();
    stop.request_stop();
    (void)first.get();
    EXPECT_TRUE(second.get());
    EXPECT_LT(runtime::now() - released, 2s);
    ASSERT_TRUE(eventually([&] { return !exists("orders"); }));
    java_locks("60000");
  }
}

TEST_F(RedissonWire, WaiterWithoutMessagesHasItWhenTheHoldersTtlIsUp) {
  client c = direct();
  redisson_lock orders{c, "orders"};
  java_locks("700");
  const auto began = runtime::now();
  const lease held = orders.acquire(20s);
  EXPECT_LT(runtime::now() - began, 3s);
}

TEST_F(RedissonWire, WaiterPollsWhereSubscribingIsRefused) {
  ASSERT_EQ(server.command({"ACL", "SETUSER", "default", "resetchannels"}), "OK");
  client c = direct();
  redisson_lock orders{c, "orders"};
  java_locks("60000");
  auto waits = std::async(std::launch::async, [&] { return orders.acquire(20s).held(); });
  let_pass(300ms);
  ASSERT_EQ(server.command({"DEL", "orders"}), "1");
  EXPECT_TRUE(waits.get());
}

TEST_F(RedissonWire, WaiterSurvivesTheEndOfItsSubscription) {
  client c = through_proxy();
  redisson_lock orders{c, "orders"};
  java_locks("60000");
  auto waits = std::async(std::launch::async, [&] { return orders.acquire(30s).held(); });
  ASSERT_TRUE(eventually([&] { return someone_listens(); }));
  proxy.cut_all();
  ASSERT_TRUE(eventually([&] { return proxy.seen("SUBSCRIBE") >= 2 && someone_listens(); }));
  java_unlocks();
  EXPECT_TRUE(waits.get());
}

TEST_F(RedissonWire, SubscriptionEndsAWhileAfterTheLastWaiter) {
  client c = direct();
  redisson_lock orders{c, "orders"};
  java_locks("60000");
  EXPECT_FALSE(orders.try_acquire(100ms));
  EXPECT_TRUE(someone_listens()) << "for who comes back";
  EXPECT_TRUE(eventually([&] { return !someone_listens(); }));
}

TEST_F(RedissonWire, MutexAndRlockOfOneNameRefuseEachOther) {
  client c = direct();
  redisson_lock orders{c, "orders"};
  mutex native = c.mutex("orders");
  {
    const lease held = orders.acquire();
    EXPECT_EQ(thrown_by([&] { (void)native.try_acquire(); }), errc::wrong_type);
    EXPECT_EQ(server.command({"HLEN", "orders"}), "1");
  }
  ASSERT_TRUE(eventually([&] { return !exists("orders"); }));
  const lease held = native.acquire();
  EXPECT_EQ(thrown_by([&] { (void)orders.try_acquire(); }), errc::wrong_type);
  EXPECT_THAT(server.command({"GET", "orders"}), StartsWith(std::string{held.owner()}));
}

TEST_F(RedissonWire, ForceUnlockFreesItAndTellsWaiters) {
  client c = direct();
  redisson_lock orders{c, "orders"};
  EXPECT_FALSE(orders.force_unlock());
  java_locks("60000");
  listener java_waits{server};
  EXPECT_TRUE(orders.force_unlock());
  EXPECT_EQ(java_waits.next(), "message\n" + channel + "\n0");
  EXPECT_FALSE(exists("orders"));
}

TEST_F(RedissonWire, StoresWithoutAHashRefuseItWithTheReason) {
  client c{"memory:"};
  std::string what;
  EXPECT_EQ(thrown_by([&] { redisson_lock{c, "orders"}; }, &what), errc::unsupported);
  EXPECT_THAT(what, HasSubstr("memory:"));
}

// ---- tokens ------------------------------------------------------------------------------------

TEST_F(RedissonWire, FencedTokensCountFromWhereJavaLeftThem) {
  client c = direct();
  redisson_fenced_lock orders{c, "orders"};
  EXPECT_EQ(orders.acquire().token(), fencing_token{1});
  ASSERT_TRUE(eventually([&] { return !exists("orders"); }));
  ASSERT_EQ(server.command({"INCRBY", "redisson_lock_token:{orders}", "5"}), "6");
  lease held = orders.acquire();
  EXPECT_EQ(held.token(), fencing_token{7});
  EXPECT_TRUE(held.renew());
  EXPECT_EQ(orders.status().holder.value().token, fencing_token{7});
  EXPECT_EQ(server.command({"PTTL", "redisson_lock_token:{orders}"}), "-1");
}

TEST_F(RedissonWire, FencedGrantThatIsAskedForTwiceHasOneToken) {
  client c = through_proxy({.operation_timeout = 400ms});
  redisson_fenced_lock orders{c, "orders"};
  (void)orders.acquire().release();
  proxy.inject(fault::swallow_reply, "redisson_lock_token:{orders}");
  lease held = orders.acquire();
  EXPECT_EQ(held.token(), fencing_token{2});
  EXPECT_EQ(server.command({"GET", "redisson_lock_token:{orders}"}), "2");
  EXPECT_TRUE(held.release());
}

}  // namespace
}  // namespace holdfast::test
