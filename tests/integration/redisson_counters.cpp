// Redisson's semaphore and latch on the wire, beside a Java program played by hand. The real
// Redisson is met in tests/interop.
#include <future>
#include <thread>

#include <gmock/gmock.h>

#include "support/proxied_redis.hpp"

using namespace std::chrono_literals;
using holdfast::redisson::rcount_down_latch;
using holdfast::redisson::rsemaphore;

namespace holdfast::test {
namespace {

using testing::HasSubstr;
namespace scripts = stores::redis::scripts;

const std::string freed = "redisson_sc:{slots}";
const std::string opened = "redisson_countdownlatch__channel__{tested}";

class RedissonCounters : public proxied_redis {
 protected:
  void SetUp() override {
    proxied_redis::SetUp();
    for (const auto* one : {&scripts::redisson_counter_look, &scripts::redisson_counter_set,
                            &scripts::redisson_semaphore_take, &scripts::redisson_semaphore_add,
                            &scripts::redisson_semaphore_drain, &scripts::redisson_latch_count}) {
      ASSERT_EQ(server.command({"SCRIPT", "LOAD", std::string{one->source}}), one->sha1);
    }
  }
  [[nodiscard]] std::string value(const std::string& of) const {
    return server.command({"GET", of});
  }
  [[nodiscard]] bool is_heard(const std::string& channel) const {
    return server.command({"PUBSUB", "NUMSUB", channel}) == channel + "\n1";
  }
};

// Reads one channel, as Redisson does.
class listener {
 public:
  listener(const redis_server& at, const std::string& channel)
      : channel_{channel}, link_{at.where(), 5s} {
    (void)link_.command({"SUBSCRIBE", channel});
  }
  // The next message.
  [[nodiscard]] std::string next() {
    return link_.receive().shown().substr(("message\n" + channel_ + "\n").size());
  }

 private:
  const std::string channel_;
  raw_redis link_;
};

// ---- rsemaphore --------------------------------------------------------------------------------

TEST_F(RedissonCounters, SemaphoreIsAPlainNumber) {
  client c = direct();
  rsemaphore slots{c, "slots"};
  EXPECT_EQ(slots.available_permits(), 0);
  EXPECT_FALSE(slots.try_acquire());
  EXPECT_FALSE(exists("slots"));
  EXPECT_TRUE(slots.try_set_permits(3));
  EXPECT_FALSE(slots.try_set_permits(5)) << "it was set before";
  EXPECT_EQ(value("slots"), "3");
  EXPECT_TRUE(slots.try_acquire(2));
  EXPECT_EQ(value("slots"), "1");
  EXPECT_FALSE(slots.try_acquire(2)) << "all or none";
  EXPECT_EQ(slots.available_permits(), 1);
  slots.release(2);
  EXPECT_EQ(value("slots"), "3");
  slots.add_permits(-5);
  EXPECT_EQ(slots.available_permits(), -2);
  slots.add_permits(6);
  EXPECT_EQ(slots.drain_permits(), 4);
  EXPECT_EQ(value("slots"), "0");
  EXPECT_EQ(slots.drain_permits(), 0);
  EXPECT_EQ(server.command({"PTTL", "slots"}), "-1");
}

TEST_F(RedissonCounters, SemaphoresReleasePublishesHowManyThereAreNow) {
  client c = direct();
  rsemaphore slots{c, "slots"};
  listener java_waits{server, freed};
  EXPECT_TRUE(slots.try_set_permits(2));
  EXPECT_EQ(java_waits.next(), "2");
  slots.acquire(2);
  slots.release();
  EXPECT_EQ(java_waits.next(), "1");
  slots.add_permits(3);
  EXPECT_EQ(java_waits.next(), "4");
}

TEST_F(RedissonCounters, JavasReleaseWakesAWaiterForPermits) {
  client c = direct();
  rsemaphore slots{c, "slots"};
  auto waits = std::async(std::launch::async, [&] {
    slots.acquire(2);
    return runtime::now();
  });
  ASSERT_TRUE(eventually([&] { return is_heard(freed); }));
  ASSERT_TRUE(eventually([&] { return c.counters().waiting_now == 1; }));
  const auto released = runtime::now();
  (void)server.command({"INCRBY", "slots", "2"});
  (void)server.command({"PUBLISH", freed, "2"});
  EXPECT_LT(waits.get() - released, 2s);
  EXPECT_EQ(value("slots"), "0");
}

TEST_F(RedissonCounters, SemaphoreBoundsThoseWhoAreInside) {
  client one = direct();
  client other = direct();
  EXPECT_TRUE(rsemaphore(one, "slots").try_set_permits(2));
  std::atomic<int> inside{0};
  std::atomic<int> most{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 6; ++i) {
    threads.emplace_back([&, i] {
      rsemaphore slots{i % 2 == 0 ? one : other, "slots"};
      for (int turn = 0; turn < 10; ++turn) {
        slots.acquire();
        const int now = ++inside;
        for (auto seen = most.load(); seen < now && !most.compare_exchange_weak(seen, now);) {
        }
        --inside;
        slots.release();
      }
    });
  }
  for (auto& t : threads)
    t.join();
  EXPECT_LE(most, 2);
  EXPECT_EQ(value("slots"), "2");
}

// The layout cannot tell an ask from its repetition: it is said, and nothing is asked again.
TEST_F(RedissonCounters, LostAnswerIsUnknownAndNotAskedForAgain) {
  client c = through_proxy({.operation_timeout = 300ms});
  rsemaphore slots{c, "slots"};
  rcount_down_latch tested{c, "tested"};
  EXPECT_TRUE(slots.try_set_permits(5));
  EXPECT_TRUE(tested.try_set_count(5));
  std::string what;
  proxy.inject(fault::swallow_reply, std::string{scripts::redisson_semaphore_take.sha1});
  EXPECT_EQ(thrown_by([&] { slots.acquire(); }, &what), errc::outcome_unknown);
  EXPECT_THAT(what, HasSubstr("not known"));
  EXPECT_EQ(value("slots"), "4");
  proxy.inject(fault::swallow_reply, std::string{scripts::redisson_semaphore_add.sha1});
  EXPECT_EQ(thrown_by([&] { slots.release(); }), errc::outcome_unknown);
  EXPECT_EQ(value("slots"), "5");
  proxy.inject(fault::cut_before_reply, std::string{scripts::redisson_latch_count.sha1});
  EXPECT_EQ(thrown_by([&] { tested.count_down(); }), errc::outcome_unknown);
  EXPECT_EQ(value("tested"), "4");
  EXPECT_EQ(proxy.seen(std::string{scripts::redisson_semaphore_take.sha1}), 1U);
  EXPECT_EQ(proxy.seen(std::string{scripts::redisson_latch_count.sha1}), 1U);
}

TEST_F(RedissonCounters, WaitForPermitsEndsInTimeOrWhenStopped) {
  client c = direct({.wait_limit = 100ms});
  rsemaphore slots{c, "slots"};
  EXPECT_FALSE(slots.try_acquire(1, 50ms));
  std::string what;
  EXPECT_EQ(thrown_by([&] { slots.acquire(3); }, &what), errc::timed_out);
  EXPECT_THAT(what, HasSubstr("0 permits are free"));
  std::stop_source stop;
  std::thread waits{[&] { EXPECT_FALSE(slots.try_acquire(1, 60s, stop.get_token())); }};
  EXPECT_TRUE(eventually([&] { return c.counters().waiting_now == 1; }));
  stop.request_stop();
  waits.join();
  EXPECT_EQ(slots.available_permits(), 0);
}

// ---- rcount_down_latch -------------------------------------------------------------------------

TEST_F(RedissonCounters, LatchIsANumberThatIsGoneAtZero) {
  client c = direct();
  rcount_down_latch tested{c, "tested"};
  EXPECT_TRUE(tested.try_wait()) << "one that nobody has set is open, as in Java";
  EXPECT_EQ(tested.count_down(), 0);
  EXPECT_FALSE(exists("tested"));
  listener java_waits{server, opened};
  EXPECT_TRUE(tested.try_set_count(2));
  EXPECT_EQ(java_waits.next(), "1");
  EXPECT_FALSE(tested.try_set_count(7));
  EXPECT_EQ(value("tested"), "2");
  EXPECT_EQ(tested.count(), 2);
  EXPECT_EQ(tested.count_down(), 1);
  EXPECT_FALSE(tested.wait(20ms));
  EXPECT_EQ(tested.count_down(), 0);
  EXPECT_EQ(java_waits.next(), "0");
  EXPECT_FALSE(exists("tested"));
  EXPECT_NO_THROW(tested.wait());
  EXPECT_TRUE(tested.try_set_count(1)) << "it can be used again";
}

// Its message is a "0", as that of a lock's release, which wakes one.
TEST_F(RedissonCounters, JavasLastCountWakesAllWhoWait) {
  client c = direct();
  rcount_down_latch tested{c, "tested"};
  EXPECT_TRUE(tested.try_set_count(1));
  constexpr std::size_t many = 5;
  std::vector<std::future<void>> waits;
  for (std::size_t i = 0; i < many; ++i)
    waits.push_back(std::async(std::launch::async, [&] { tested.wait(); }));
  ASSERT_TRUE(eventually([&] { return is_heard(opened) && c.counters().waiting_now == many; }));
  const auto counted = runtime::now();
  ASSERT_EQ(server.command({"DEL", "tested"}), "1");
  (void)server.command({"PUBLISH", opened, "0"});
  for (auto& one : waits)
    one.get();
  EXPECT_LT(runtime::now() - counted, 2s);
}

TEST_F(RedissonCounters, NameWithABraceIsPutIntoBracesForALatchOnly) {
  client c = direct();
  rcount_down_latch tested{c, "{shop}:tested"};
  rsemaphore slots{c, "{shop}:slots"};
  listener latch{server, "redisson_countdownlatch__channel__{{shop}:tested}"};
  listener semaphore{server, "redisson_sc:{shop}:slots"};
  EXPECT_TRUE(tested.try_set_count(1));
  EXPECT_EQ(latch.next(), "1");
  EXPECT_TRUE(slots.try_set_permits(4));
  EXPECT_EQ(semaphore.next(), "4");
}

// ---- both --------------------------------------------------------------------------------------

TEST_F(RedissonCounters, KeyOfAnotherTypeIsRefusedAndLeftAlone) {
  client c = direct();
  rsemaphore slots{c, "slots"};
  rcount_down_latch tested{c, "slots"};
  const auto held = c.mutex("slots").acquire();
  const auto before = value("slots");
  EXPECT_EQ(thrown_by([&] { slots.release(); }), errc::wrong_type);
  EXPECT_EQ(thrown_by([&] { static_cast<void>(slots.try_acquire()); }), errc::wrong_type);
  EXPECT_EQ(thrown_by([&] { static_cast<void>(slots.drain_permits()); }), errc::wrong_type);
  EXPECT_EQ(thrown_by([&] { tested.try_set_count(1); }), errc::wrong_type);
  EXPECT_EQ(thrown_by([&] { tested.count_down(); }), errc::wrong_type);
  EXPECT_EQ(value("slots"), before);
  const redisson::rlock lock{c, "lock"};
  ASSERT_EQ(server.command({"HSET", "lock", "java", "1"}), "1");
  EXPECT_EQ(thrown_by([&] { rsemaphore(c, "lock").release(); }), errc::wrong_type);
  EXPECT_EQ(thrown_by([&] { rcount_down_latch(c, "lock").wait(); }), errc::wrong_type);
}

TEST_F(RedissonCounters, NumbersThatJavaCannotReadAreRefused) {
  client c = direct();
  rsemaphore slots{c, "slots"};
  rcount_down_latch tested{c, "tested"};
  constexpr std::uint32_t too_much = 2'147'483'648U;
  EXPECT_EQ(thrown_by([&] { slots.acquire(0); }), errc::invalid_argument);
  EXPECT_EQ(thrown_by([&] { static_cast<void>(slots.try_acquire(too_much, 1s)); }),
            errc::invalid_argument);
  EXPECT_EQ(thrown_by([&] { slots.release(too_much); }), errc::invalid_argument);
  EXPECT_EQ(thrown_by([&] { slots.try_set_permits(0); }), errc::invalid_argument);
  EXPECT_EQ(thrown_by([&] { slots.add_permits(std::numeric_limits<std::int64_t>::min()); }),
            errc::invalid_argument);
  EXPECT_EQ(thrown_by([&] { tested.try_set_count(0); }), errc::invalid_argument);
  EXPECT_EQ(server.command({"KEYS", "*"}), "");
}

TEST_F(RedissonCounters, OtherStoresRefuseThem) {
  for (const auto* url : {"memory:", "redlock://127.0.0.1:1,127.0.0.1:2,127.0.0.1:3"}) {
    client c{url};
    EXPECT_EQ(thrown_by([&] { rsemaphore(c, "slots"); }), errc::unsupported) << url;
    EXPECT_EQ(thrown_by([&] { rcount_down_latch(c, "tested"); }), errc::unsupported) << url;
  }
}

}  // namespace
}  // namespace holdfast::test
