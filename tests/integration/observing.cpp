// What a program is told of its locks: events and counters.
#include <thread>

#include "support/proxied_redis.hpp"

using namespace std::chrono_literals;

namespace holdfast::test {

class Observing : public proxied_redis {
 protected:
  const std::shared_ptr<recorder> seen = std::make_shared<recorder>();
};

TEST_F(Observing, OrdinaryLifeIsToldInOrder) {
  client c = direct({.lock = {.ttl = 2'100ms}, .observer = seen});
  lease held = c.mutex("orders").acquire();
  ASSERT_TRUE(seen->await(event::kind::renewed));
  ASSERT_TRUE(held.release());
  ASSERT_TRUE(seen->await(event::kind::released));
  const auto all = seen->all();
  EXPECT_EQ(all.front().type, event::kind::acquired);
  EXPECT_EQ(all.back().type, event::kind::released);
  for (const seen_event& e : all) {
    EXPECT_EQ(e.lock, "orders");
    EXPECT_EQ(e.token, held.token());
  }
  EXPECT_GT(seen->first(event::kind::acquired)->duration, 0ns);
  EXPECT_GT(seen->first(event::kind::released)->duration, 0ns);
  const counters n = c.counters();
  EXPECT_EQ(n.acquisitions, 1U);
  EXPECT_EQ(n.releases, 1U);
  EXPECT_EQ(n.waits, 0U);
  EXPECT_EQ(n.held_now, 0U);
  EXPECT_GE(n.renewals, 1U);
  EXPECT_GE(n.renewal_calls, 1U);
}

TEST_F(Observing, WaitsAreToldOnceAndCounted) {
  client a = direct({.lock = {.ttl = 60s}});
  client b = direct({.lock = {.ttl = 60s}, .observer = seen});
  lease held = a.mutex("orders").acquire();
  std::thread waiter{[&] { (void)b.mutex("orders").try_acquire(patience); }};
  EXPECT_TRUE(seen->await(event::kind::waiting));
  EXPECT_EQ(b.counters().waiting_now, 1U);
  EXPECT_TRUE(held.release());
  waiter.join();
  EXPECT_EQ(b.counters().waiting_now, 0U);
  EXPECT_EQ(b.counters().waits, 1U);
  EXPECT_EQ(seen->count(event::kind::waiting), 1U);
  EXPECT_EQ(seen->count(event::kind::acquired), 1U);
}

TEST_F(Observing, OutageIsToldAsFailedRenewalsThenALoss) {
  client c = through_proxy({.lock = {.ttl = 3s}, .operation_timeout = 300ms, .observer = seen});
  lease held = c.mutex("orders").acquire();
  proxy.stall_requests(true);
  ASSERT_TRUE(seen->await(event::kind::renewal_failed));
  ASSERT_TRUE(seen->await(event::kind::lost));
  const auto lost = seen->first(event::kind::lost);
  EXPECT_EQ(lost->lock, "orders");
  EXPECT_EQ(lost->token, held.token());
  EXPECT_FALSE(lost->detail.empty());
  EXPECT_GE(c.counters().renewal_failures, 1U);
  EXPECT_EQ(c.counters().losses, 1U);
}

TEST_F(Observing, FailuresAreToldAndCounted) {
  client c{"unix:/nowhere/redis.sock",
           {.operation_timeout = 200ms, .unreachable_limit = 200ms, .observer = seen}};
  EXPECT_EQ(thrown_by([&] { (void)c.mutex("orders").acquire(); }), errc::store_unreachable);
  ASSERT_TRUE(seen->await(event::kind::failed));
  EXPECT_EQ(seen->first(event::kind::failed)->code, errc::store_unreachable);
  EXPECT_EQ(c.counters().failures, 1U);
  EXPECT_EQ(c.counters().acquisitions, 0U);
}

TEST_F(Observing, UnlockOfWhatIsNotHeldIsToldAsMisuse) {
  client c = direct({.observer = seen});
  c.mutex("orders").unlock();
  ASSERT_TRUE(seen->await(event::kind::misuse));
  EXPECT_EQ(seen->first(event::kind::misuse)->lock, "orders");
}

TEST_F(Observing, NoEventHoldsASecret) {
  redis_server locked{{.tcp = true, .password = "open-sesame"}};
  const std::string at = "@127.0.0.1:" + std::to_string(locked.port());
  const client_options options{
      .operation_timeout = 300ms, .unreachable_limit = 300ms, .observer = seen};
  for (const std::string& url : {"redis://:open-sesame" + at, "redis://:sesame-street" + at}) {
    client c{url, options};
    (void)thrown_by([&] { (void)c.mutex("orders").acquire(); });
  }
  locked.kill9();
  client c{"redis://:open-sesame" + at, options};
  (void)thrown_by([&] { (void)c.mutex("orders").acquire(); });
  ASSERT_TRUE(seen->await(event::kind::failed, 2));
  for (const seen_event& e : seen->all()) {
    EXPECT_EQ(e.detail.find("sesame"), std::string::npos) << e.detail;
  }
}

// An observer that is stuck must not cost a lease.
TEST_F(Observing, SlowObserverDoesNotDelayRenewal) {
  class slow final : public observer {
   public:
    void on_event(const event& e) noexcept override {
      if (e.type != event::kind::renewed) return;
      std::unique_lock lock{m};
      changed.wait(lock, [&] { return enough; });
    }
    std::mutex m;
    std::condition_variable changed;
    bool enough = false;
  };
  const auto stuck = std::make_shared<slow>();
  {
    client c = direct({.lock = {.ttl = 2'100ms}, .observer = stuck});
    lease held = c.mutex("orders").acquire();
    EXPECT_TRUE(eventually([&] { return c.counters().renewals >= 5; }));
    EXPECT_TRUE(held.held());
    const std::lock_guard lock{stuck->m};
    stuck->enough = true;
    stuck->changed.notify_all();
  }
}

}  // namespace holdfast::test
