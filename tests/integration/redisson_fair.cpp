// rfair_lock on the wire and in use, beside a Java program played by hand: the queue, until when
// its places are kept, and who is told. The real Redisson is met in tests/interop.
#include <future>
#include <thread>

#include <gmock/gmock.h>

#include "support/proxied_redis.hpp"

using namespace std::chrono_literals;
using holdfast::redisson::rfair_lock;

namespace holdfast::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

const std::string queue = "redisson_lock_queue:{orders}";
const std::string places = "redisson_lock_timeout:{orders}";
const std::string channel = "redisson_lock__channel:{orders}";
const std::string java = "0f8fad5b-d9cb-469f-a165-70867728950e:47";
const std::string java_too = "0f8fad5b-d9cb-469f-a165-70867728950e:48";
const std::string fair_asks{stores::redis::scripts::redisson_fair_acquire.sha1};

class RedissonFair : public proxied_redis {
 protected:
  [[nodiscard]] std::vector<std::string> waiters() const {
    std::istringstream from{server.command({"LRANGE", queue, "0", "-1"})};
    std::vector<std::string> all;
    for (std::string one; std::getline(from, one);)
      all.push_back(one);
    return all;
  }
  [[nodiscard]] bool become(std::size_t count) const {
    return eventually([&] { return waiters().size() == count; });
  }
  // For how long a place is kept from now on, by the server's clock.
  [[nodiscard]] std::chrono::milliseconds kept(const std::string& entry) const {
    const auto until = std::stod(server.command({"ZSCORE", places, entry}));
    return std::chrono::milliseconds{static_cast<long long>(until) - server_ms()};
  }
  [[nodiscard]] long long server_ms() const {
    std::istringstream time{server.command({"TIME"})};
    long long seconds = 0, micros = 0;
    time >> seconds >> micros;
    return seconds * 1000 + micros / 1000;
  }
  void java_locks() const {
    ASSERT_EQ(server.command({"HSET", "orders", java, "1"}), "1");
    ASSERT_EQ(server.command({"PEXPIRE", "orders", "60000"}), "1");
  }
  void java_joins(const std::string& who, std::chrono::milliseconds keeps) const {
    ASSERT_EQ(server.command({"ZADD", places, std::to_string(server_ms() + keeps.count()), who}),
              "1");
    (void)server.command({"RPUSH", queue, who});
  }
  // As Redisson's script does it: the first is told, and no other.
  void java_unlocks() const {
    ASSERT_EQ(server.command({"DEL", "orders"}), "1");
    const auto first = server.command({"LINDEX", queue, "0"});
    if (!first.empty()) (void)server.command({"PUBLISH", channel + ":" + first, "0"});
  }
  [[nodiscard]] bool is_listened_to(const std::string& entry) const {
    const auto mine = channel + ":" + entry;
    return server.command({"PUBSUB", "NUMSUB", mine}) == mine + "\n1";
  }
  [[nodiscard]] bool first_listens() const {
    const auto all = waiters();
    return !all.empty() && is_listened_to(all.front());
  }
};

// ---- layout ------------------------------------------------------------------------------------

TEST_F(RedissonFair, HoldsWhatARlockHoldsAndLeavesNothingBehind) {
  client c = direct();
  rfair_lock orders{c, "orders"};
  lease held = orders.acquire();
  EXPECT_EQ(server.command({"HVALS", "orders"}), "1");
  EXPECT_THAT(server.command({"HKEYS", "orders"}), StartsWith(std::string{held.owner()} + ";"));
  EXPECT_GT(pttl("orders"), 25s);
  ASSERT_TRUE(held.renew());
  ASSERT_TRUE(held.release());
  EXPECT_TRUE(eventually([&] {
    return server.command({"KEYS", "*orders*"}).empty();
  })) << server.command({"KEYS", "*orders*"});
}

TEST_F(RedissonFair, WaiterHasAnEntryAPlaceAndAChannelOfItsOwn) {
  client c = direct();
  rfair_lock orders{c, "orders", {.label = "night shift"}};
  java_locks();
  auto waits = std::async(std::launch::async, [&] { return orders.acquire(30s).held(); });
  ASSERT_TRUE(eventually([&] { return first_listens(); }));
  const auto entry = waiters().front();
  EXPECT_THAT(entry, HasSubstr(";holdfast=1;place=60000;"));
  EXPECT_GT(kept(entry), 110s) << "the holder's TTL, and two of its own";
  EXPECT_LE(kept(entry), 125s);
  const auto status = orders.status();
  EXPECT_EQ(status.holder.value().value, java);
  ASSERT_EQ(status.waiters.size(), 1U);
  EXPECT_EQ(status.waiters[0].label, "night shift");
  EXPECT_GT(status.waiters[0].pid, 0);
  java_unlocks();
  EXPECT_TRUE(waits.get());
  EXPECT_TRUE(eventually([&] { return server.command({"KEYS", "*orders*"}).empty(); }));
}

// As Redisson has it: one behind another keeps its place for as long as that one, and longer.
TEST_F(RedissonFair, PlacesAddUpAndAreTakenOffAgain) {
  client c = direct();
  rfair_lock orders{c, "orders"};
  java_locks();
  java_joins(java_too, 100s);
  auto waits = std::async(std::launch::async, [&] { return orders.acquire(30s).held(); });
  ASSERT_TRUE(become(2));
  const auto entry = waiters().back();
  EXPECT_GT(kept(entry), 150s);
  EXPECT_LE(kept(entry), 165s);
  const std::string behind = java + "1";
  java_joins(behind, 500s);
  ASSERT_EQ(server.command({"LREM", queue, "1", java_too}), "1");
  ASSERT_EQ(server.command({"ZREM", places, java_too}), "1");
  java_unlocks();
  EXPECT_TRUE(waits.get());
  EXPECT_LE(kept(behind), 441s) << "less what ours had for itself";
  EXPECT_GT(kept(behind), 420s);
}

TEST_F(RedissonFair, StatusShowsWaitersOfBothSides) {
  client c = direct();
  rfair_lock orders{c, "orders"};
  java_locks();
  java_joins(java_too, 100s);
  const auto status = orders.status();
  EXPECT_EQ(status.waiting, 1U);
  ASSERT_EQ(status.waiters.size(), 1U);
  EXPECT_EQ(status.waiters[0].label, java_too);
}

// ---- order -------------------------------------------------------------------------------------

TEST_F(RedissonFair, ThreadsAreServedInTheOrderInWhichTheyCame) {
  client c = direct();
  rfair_lock orders{c, "orders"};
  java_locks();
  std::mutex m;
  std::vector<int> served;
  std::vector<std::future<void>> all;
  for (int i = 0; i < 5; ++i) {
    all.push_back(std::async(std::launch::async, [&, i] {
      const lease held = orders.acquire(60s);
      const std::lock_guard guard{m};
      served.push_back(i);
    }));
    ASSERT_TRUE(become(static_cast<std::size_t>(i) + 1));
  }
  ASSERT_TRUE(eventually([&] { return first_listens(); }));
  const auto released = runtime::now();
  java_unlocks();
  for (auto& one : all)
    one.get();
  EXPECT_THAT(served, ElementsAre(0, 1, 2, 3, 4));
  EXPECT_LT(runtime::now() - released, 5s) << "each tells the next";
}

TEST_F(RedissonFair, TryDoesNotOvertakeNorJoin) {
  client c = direct();
  rfair_lock orders{c, "orders"};
  java_joins(java, 100s);
  EXPECT_FALSE(orders.try_acquire());
  EXPECT_FALSE(orders.try_lock());
  EXPECT_THAT(waiters(), ElementsAre(java));
}

TEST_F(RedissonFair, JavasFirstWaiterIsToldWhenWeRelease) {
  client c = direct();
  rfair_lock orders{c, "orders"};
  lease held = orders.acquire();
  java_joins(java, 100s);
  java_joins(java_too, 200s);
  raw_redis link{server.where(), 5s};
  (void)link.command({"SUBSCRIBE", channel + ":" + java});
  ASSERT_TRUE(held.release());
  EXPECT_EQ(link.receive().shown(), "message\n" + channel + ":" + java + "\n0");
  EXPECT_FALSE(orders.try_acquire()) << "it is Java's turn";
}

// ---- waiters that go ---------------------------------------------------------------------------

TEST_F(RedissonFair, WaiterThatGivesUpLeavesTheQueueAndTakesItsTimeOff) {
  client c = direct();
  rfair_lock orders{c, "orders"};
  java_locks();
  std::stop_source stop;
  auto waits = std::async(std::launch::async,
                          [&] { return orders.try_acquire(60s, stop.get_token()).has_value(); });
  ASSERT_TRUE(become(1));
  java_joins(java_too, 500s);
  stop.request_stop();
  EXPECT_FALSE(waits.get());
  EXPECT_THAT(waiters(), ElementsAre(java_too));
  EXPECT_LE(kept(java_too), 441s);
  EXPECT_EQ(server.command({"ZCARD", places}), "1");
  EXPECT_FALSE(orders.try_acquire(100ms)) << "timed out";
  EXPECT_THAT(waiters(), ElementsAre(java_too));
}

// It was told, and told nobody: the next must not wait for its own clock.
TEST_F(RedissonFair, FirstWaiterThatGivesUpTellsTheNext) {
  client c = direct();
  rfair_lock orders{c, "orders"};
  java_joins(java, 100s);  // nobody has it, and Java's first does not come for it
  std::stop_source stop;
  auto waits = std::async(std::launch::async,
                          [&] { return orders.try_acquire(60s, stop.get_token()).has_value(); });
  ASSERT_TRUE(become(2));
  raw_redis link{server.where(), 5s};
  (void)link.command({"SUBSCRIBE", channel + ":" + java});
  stop.request_stop();
  EXPECT_FALSE(waits.get());
  EXPECT_EQ(link.receive().shown(), "message\n" + channel + ":" + java + "\n0");
}

TEST_F(RedissonFair, DeadWaiterOfJavasIsPassedOverWhenItsTimeIsUp) {
  client c = direct();
  rfair_lock orders{c, "orders"};
  java_joins(java, 1500ms);
  const auto began = runtime::now();
  EXPECT_TRUE(orders.acquire(30s).held());
  const auto took = runtime::now() - began;
  EXPECT_GT(took, 1s);
  EXPECT_LT(took, 6s);
}

TEST_F(RedissonFair, WaiterThatIsThereKeepsItsPlaceHoweverLongItWaits) {
  client c = direct({.lock = {.ttl = 500ms}});
  rfair_lock orders{c, "orders"};
  ASSERT_EQ(server.command({"HSET", "orders", java, "1"}), "1");
  ASSERT_EQ(server.command({"PEXPIRE", "orders", "300"}), "1");
  auto waits = std::async(std::launch::async, [&] { return orders.acquire(60s).held(); });
  ASSERT_TRUE(become(1));
  ASSERT_EQ(server.command({"PEXPIRE", "orders", "60000"}), "1");
  const auto entry = waiters().front();
  let_pass(2s);  // its place was kept for 1.3 s
  EXPECT_THAT(waiters(), ElementsAre(entry));
  EXPECT_GT(kept(entry), 300ms);
  EXPECT_LE(kept(entry), 2s) << "if it dies, others are not delayed for longer";
  java_unlocks();
  EXPECT_TRUE(waits.get());
}

TEST_F(RedissonFair, HolderThatDiesIsFollowedByTheFirstWaiter) {
  client c = direct();
  rfair_lock brief{c, "orders", {.ttl = 700ms, .renew = false}};
  rfair_lock orders{c, "orders"};
  const lease dead = brief.acquire();
  const auto began = runtime::now();
  EXPECT_TRUE(orders.acquire(20s).held());
  EXPECT_LT(runtime::now() - began, 4s);
}

// ---- the rest ----------------------------------------------------------------------------------

TEST_F(RedissonFair, ForceUnlockTellsTheFirst) {
  client c = direct();
  rfair_lock orders{c, "orders"};
  EXPECT_FALSE(orders.force_unlock());
  java_locks();
  auto waits = std::async(std::launch::async, [&] { return orders.acquire(60s).held(); });
  ASSERT_TRUE(eventually([&] { return first_listens(); }));
  const auto forced = runtime::now();
  EXPECT_TRUE(orders.force_unlock());
  EXPECT_TRUE(waits.get());
  EXPECT_LT(runtime::now() - forced, 1s);
}

TEST_F(RedissonFair, ReentryIsCountedInTheProcess) {
  client c = direct();
  rfair_lock orders{c, "orders"};
  orders.lock();
  java_joins(java, 100s);
  orders.lock();  // though another waits
  EXPECT_EQ(orders.holds(), 2U);
  orders.unlock();
  EXPECT_TRUE(exists("orders"));
  orders.unlock();
  EXPECT_TRUE(eventually([&] { return !exists("orders"); }));
}

TEST_F(RedissonFair, RetriedAskTakesOnePlaceAndOneHold) {
  client c = through_proxy({.operation_timeout = 400ms});
  rfair_lock orders{c, "orders"};
  java_locks();
  proxy.inject(fault::swallow_reply, fair_asks);
  auto waits = std::async(std::launch::async, [&] { return orders.acquire(60s); });
  ASSERT_TRUE(proxy.await_faults(1));
  ASSERT_TRUE(eventually([&] { return first_listens(); }));
  EXPECT_EQ(waiters().size(), 1U);
  java_unlocks();
  lease held = waits.get();
  EXPECT_TRUE(held.release());
  EXPECT_TRUE(eventually([&] {
    return server.command({"KEYS", "*orders*"}).empty();
  })) << server.command({"KEYS", "*orders*"});
}

// An ask that arrives after its attempt has given up must not stay in the queue.
TEST_F(RedissonFair, LateAskDoesNotWaitForNobody) {
  client c = through_proxy({.operation_timeout = 400ms, .unreachable_limit = 1s});
  rfair_lock orders{c, "orders"};
  java_locks();
  proxy.inject(fault::hold_request, fair_asks);
  (void)orders.acquire_result(300ms);
  proxy.let_go();
  let_pass(100ms);
  EXPECT_TRUE(become(0));
}

}  // namespace
}  // namespace holdfast::test
