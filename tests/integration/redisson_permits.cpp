// Permits of Redisson's expirable semaphore on the wire, beside a Java program played by hand.
#include <future>

#include "support/proxied_redis.hpp"

using namespace std::chrono_literals;
using permits = holdfast::redisson::rpermit_expirable_semaphore;

namespace holdfast::test {
namespace {

const std::string timeouts = "{slots}:timeout";
const std::string channel = "redisson_sc:{slots}";

class RedissonPermits : public proxied_redis {
 protected:
  [[nodiscard]] std::string free() const { return server.command({"GET", "slots"}); }
  [[nodiscard]] std::string taken() const { return server.command({"ZCARD", timeouts}); }
  static std::string in(std::chrono::milliseconds time) {
    return std::to_string((runtime::wall_ms() + time).count());
  }
  void java_takes_one(std::chrono::milliseconds lease) const {
    (void)server.command({"DECR", "slots"});
    ASSERT_EQ(server.command({"ZADD", timeouts, in(lease), "java"}), "1");
  }
  void java_gives_it_back() const {
    ASSERT_EQ(server.command({"ZREM", timeouts, "java"}), "1");
    const auto value = server.command({"INCR", "slots"});
    (void)server.command({"PUBLISH", channel, value});
  }
};

TEST_F(RedissonPermits, TakesOneOfTheCounterAndIsInTheSetUntilItExpires) {
  client c = direct();
  permits slots{c, "slots", 2};
  lease held = slots.acquire();
  EXPECT_EQ(free(), "1");
  const auto until = server.command({"ZSCORE", timeouts, std::string{held.owner()}});
  EXPECT_GT(until, in(25s));
  EXPECT_LT(until, in(31s));
  EXPECT_TRUE(held.release());
  EXPECT_EQ(free(), "2");
  EXPECT_EQ(taken(), "0");
}

TEST_F(RedissonPermits, NoMoreThanThereAreAreGranted) {
  client c = direct();
  permits slots{c, "slots", 2};
  const lease one = slots.acquire();
  const lease other = slots.acquire();
  EXPECT_FALSE(slots.try_acquire());
  EXPECT_EQ(free(), "0");
}

TEST_F(RedissonPermits, NumberThatWasSetBeforeStays) {
  ASSERT_EQ(server.command({"SET", "slots", "1"}), "OK");
  client c = direct();
  permits slots{c, "slots", 5};
  const lease one = slots.acquire();
  EXPECT_FALSE(slots.try_acquire());
}

TEST_F(RedissonPermits, WithoutANumberNobodyGetsOneUntilItIsSet) {
  client c = direct();
  permits slots{c, "slots"};
  EXPECT_FALSE(slots.try_acquire());
  EXPECT_FALSE(exists("slots"));
  auto waits = std::async(std::launch::async, [&] { return slots.acquire(30s).held(); });
  ASSERT_TRUE(eventually([&] {
    return server.command({"PUBSUB", "NUMSUB", channel}) == channel + "\n1";
  }));
  ASSERT_EQ(server.command({"SET", "slots", "1"}), "OK");
  (void)server.command({"PUBLISH", channel, "1"});
  EXPECT_TRUE(waits.get());
}

TEST_F(RedissonPermits, ReleasePublishesHowManyThereAreNow) {
  client c = direct();
  permits slots{c, "slots", 3};
  lease held = slots.acquire();
  raw_redis java_waits{server.where(), 5s};
  (void)java_waits.command({"SUBSCRIBE", channel});
  EXPECT_TRUE(held.release());
  EXPECT_EQ(java_waits.receive().shown(), "message\n" + channel + "\n3");
}

TEST_F(RedissonPermits, JavasReleaseWakesAWaiter) {
  client c = direct();
  permits slots{c, "slots", 1};
  (void)slots.acquire().release();
  java_takes_one(60s);
  auto waits = std::async(std::launch::async, [&] {
    const lease held = slots.acquire(30s);
    return runtime::now();
  });
  ASSERT_TRUE(eventually([&] { return c.counters().waiting_now == 1; }));
  let_pass(100ms);
  const auto released = runtime::now();
  java_gives_it_back();
  EXPECT_LT(waits.get() - released, 1s);
}

TEST_F(RedissonPermits, ExpiredPermitOfJavaIsToBeHadAgain) {
  client c = direct();
  permits slots{c, "slots", 1};
  (void)slots.acquire().release();
  java_takes_one(700ms);
  EXPECT_FALSE(slots.try_acquire());
  const lease held = slots.acquire(20s);
  EXPECT_EQ(free(), "0");
  EXPECT_EQ(taken(), "1");
}

TEST_F(RedissonPermits, IsRenewed) {
  const auto seen = std::make_shared<recorder>();
  client c = direct({.lock = {.ttl = 1500ms}, .observer = seen});
  permits slots{c, "slots", 1};
  const lease held = slots.acquire();
  ASSERT_TRUE(seen->await(event::kind::renewed, 4));
  EXPECT_FALSE(permits(c, "slots", 1).try_acquire());
  EXPECT_TRUE(held.held());
}

TEST_F(RedissonPermits, PermitThatWasTakenAwayIsLost) {
  client c = direct({.lock = {.ttl = 3s}});
  permits slots{c, "slots", 1};
  lease held = slots.acquire();
  watched_token lost{held.lost()};
  ASSERT_EQ(server.command({"ZREM", timeouts, std::string{held.owner()}}), "1");
  ASSERT_TRUE(lost.wait());
  EXPECT_FALSE(held.release());
  EXPECT_EQ(free(), "0") << "a release is for its own permit only";
}

TEST_F(RedissonPermits, RetriedAcquireIsOnePermit) {
  client c = through_proxy({.operation_timeout = 400ms});
  permits slots{c, "slots", 2};
  (void)slots.acquire().release();
  proxy.inject(fault::swallow_reply, channel);
  lease held = slots.acquire();
  EXPECT_EQ(free(), "1");
  EXPECT_EQ(taken(), "1");
  EXPECT_TRUE(held.release());
  EXPECT_EQ(free(), "2");
}

TEST_F(RedissonPermits, KeyOfAnotherTypeIsRefused) {
  ASSERT_EQ(server.command({"HSET", "slots", "a", "b"}), "1");
  client c = direct();
  permits slots{c, "slots", 2};
  EXPECT_EQ(thrown_by([&] { (void)slots.try_acquire(); }), errc::wrong_type);
}

}  // namespace
}  // namespace holdfast::test
