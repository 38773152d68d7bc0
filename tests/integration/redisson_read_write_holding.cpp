// Holds on rread_write_lock: re-entry, the way down, renewal, loss, and replies that are lost.
#include <mutex>
#include <shared_mutex>
#include <thread>

#include "support/proxied_redis.hpp"

using namespace std::chrono_literals;
using holdfast::redisson::rread_write_lock;

namespace holdfast::test {
namespace {

namespace scripts = stores::redis::scripts;
const std::string rw_asks{scripts::redisson_rw_acquire.sha1};
const std::string rw_releases{scripts::redisson_rw_release.sha1};
const std::string rw_downgrades{scripts::redisson_rw_downgrade.sha1};

class RedissonReadWriteHolding : public proxied_redis {
 protected:
  void SetUp() override {
    proxied_redis::SetUp();
    for (const auto* script : {&scripts::redisson_rw_acquire, &scripts::redisson_rw_release,
                               &scripts::redisson_rw_renew, &scripts::redisson_rw_downgrade}) {
      ASSERT_EQ(server.command({"SCRIPT", "LOAD", std::string{script->source}}), script->sha1);
    }
  }
  [[nodiscard]] std::string mode() const { return server.command({"HGET", "config", "mode"}); }
  [[nodiscard]] bool becomes_free() const {
    return eventually([&] { return !exists("config"); });
  }
};

// ---- by thread ---------------------------------------------------------------------------------

TEST_F(RedissonReadWriteHolding, StdGuardsReadTogetherAndWriteAlone) {
  client c = direct();
  rread_write_lock config{c, "config"};
  {
    const std::shared_lock reading{config};
    std::thread{[&] {
      EXPECT_TRUE(std::shared_lock(config, std::try_to_lock).owns_lock());
      EXPECT_FALSE(std::unique_lock(config, std::try_to_lock).owns_lock());
    }}.join();
  }
  ASSERT_TRUE(becomes_free());
  const std::unique_lock writing{config, 5s};
  EXPECT_TRUE(writing.owns_lock());
  std::thread{[&] {
    EXPECT_FALSE(std::shared_lock(config, 10ms).owns_lock());
    EXPECT_FALSE(std::unique_lock(config, 10ms).owns_lock());
  }}.join();
}

TEST_F(RedissonReadWriteHolding, ReentryCostsNothingAndOnlyTheLastUnlockReleases) {
  client c = direct();
  rread_write_lock config{c, "config"};
  config.lock_shared();
  const auto before = scripts_run();
  config.lock_shared();
  ASSERT_TRUE(config.try_lock_shared());
  EXPECT_EQ(config.read_lock().holds(), 3U);
  EXPECT_EQ(config.write_lock().holds(), 0U);
  config.unlock_shared();
  config.unlock_shared();
  EXPECT_EQ(scripts_run(), before);
  EXPECT_TRUE(exists("config"));
  config.unlock_shared();
  EXPECT_TRUE(becomes_free());
  config.lock();
  config.write_lock().lock();
  EXPECT_EQ(config.write_lock().holds(), 2U);
  config.unlock();
  EXPECT_EQ(mode(), "write");
  config.unlock();
  EXPECT_TRUE(becomes_free());
}

TEST_F(RedissonReadWriteHolding, WriterThatReadsAsWellBecomesAReader) {
  client c = direct();
  rread_write_lock config{c, "config"};
  config.lock();
  config.lock_shared();
  EXPECT_EQ(mode(), "write");
  EXPECT_EQ(config.read_lock().holds(), 1U);
  config.unlock();
  EXPECT_EQ(mode(), "read") << "when unlock() returns";
  EXPECT_EQ(config.write_lock().holds(), 0U);
  EXPECT_TRUE(config.current()->held());
  std::thread{[&] { EXPECT_TRUE(std::shared_lock(config, std::try_to_lock).owns_lock()); }}.join();
  config.unlock_shared();
  EXPECT_TRUE(becomes_free());
}

TEST_F(RedissonReadWriteHolding, ReadsThatEndFirstLeaveTheWriterAsItIs) {
  client c = direct();
  rread_write_lock config{c, "config"};
  config.lock();
  config.lock_shared();
  config.unlock_shared();
  EXPECT_EQ(mode(), "write");
  config.unlock();
  EXPECT_TRUE(becomes_free());
}

// The writer that could not be made a reader keeps others out: what the thread reads is protected.
TEST_F(RedissonReadWriteHolding, WayDownThatIsRefusedLeavesNothingUnprotected) {
  client c = through_proxy();
  rread_write_lock config{c, "config"};
  config.lock();
  config.lock_shared();
  proxy.inject(fault::answer, rw_downgrades, 1000, "-WEIRD thing\r\n");
  config.unlock();
  EXPECT_EQ(mode(), "write");
  EXPECT_TRUE(config.current()->held());
  config.unlock_shared();
  EXPECT_TRUE(becomes_free());
}

TEST_F(RedissonReadWriteHolding, WayUpIsRefused) {
  client c = direct();
  rread_write_lock config{c, "config"};
  const std::shared_lock reading{config};
  std::string what;
  EXPECT_EQ(thrown_by([&] { config.lock(); }, &what), errc::would_deadlock);
  EXPECT_NE(what.find("unlock_shared()"), std::string::npos) << what;
  EXPECT_FALSE(config.try_lock());
  EXPECT_FALSE(config.try_lock_for(1h)) << "at once";
  EXPECT_EQ(config.read_lock().holds(), 1U);
}

TEST_F(RedissonReadWriteHolding, LockingAfterALossThrowsUntilAllIsUnlocked) {
  client c = direct({.lock = {.ttl = 3s}});
  rread_write_lock config{c, "config"};
  config.lock_shared();
  watched_token lost{config.current()->lost()};
  ASSERT_EQ(server.command({"DEL", "config"}), "1");
  ASSERT_TRUE(lost.wait());
  EXPECT_EQ(thrown_by([&] { config.lock_shared(); }), errc::lease_lost);
  EXPECT_EQ(thrown_by([&] { config.lock(); }), errc::lease_lost);
  config.unlock_shared();
  config.lock();
  config.unlock();
  EXPECT_TRUE(becomes_free());
}

TEST_F(RedissonReadWriteHolding, UnlockWithoutLockIsToldToTheObserver) {
  const auto seen = std::make_shared<recorder>();
  client c = direct({.observer = seen});
  rread_write_lock config{c, "config"};
  config.unlock();
  config.lock();
  config.unlock_shared();
  EXPECT_EQ(seen->count(event::kind::misuse), 2U);
  EXPECT_EQ(config.write_lock().holds(), 1U);
  config.unlock();
}

// ---- renewal and loss --------------------------------------------------------------------------

TEST_F(RedissonReadWriteHolding, BothSidesAreRenewedTogetherWithOtherLocks) {
  const auto seen = std::make_shared<recorder>();
  client c = direct({.lock = {.ttl = 1500ms}, .observer = seen});
  rread_write_lock config{c, "config"};
  rread_write_lock other{c, "other"};
  const lease one = config.read_lock().acquire();
  const lease two = config.read_lock().acquire();
  const lease writing = other.write_lock().acquire();
  const lease native = c.mutex("native").acquire();
  ASSERT_TRUE(seen->await(event::kind::renewed, 16));
  EXPECT_TRUE(one.held() && two.held() && writing.held() && native.held());
  EXPECT_EQ(c.counters().losses, 0U);
  EXPECT_EQ(c.counters().renewal_failures, 0U);
  EXPECT_GT(pttl("config"), 400ms);
}

TEST_F(RedissonReadWriteHolding, ReaderWhoseLockIsAWritersIsToldAndLeavesItAlone) {
  client c = direct({.lock = {.ttl = 3s}});
  rread_write_lock config{c, "config"};
  lease held = config.read_lock().acquire();
  watched_token lost{held.lost()};
  ASSERT_TRUE(config.force_unlock());
  lease next = config.write_lock().acquire();
  ASSERT_TRUE(lost.wait());
  EXPECT_EQ(held.why_lost(), loss::taken);
  EXPECT_FALSE(held.release());
  EXPECT_TRUE(next.renew());
  EXPECT_TRUE(next.release());
}

TEST_F(RedissonReadWriteHolding, ReaderThatIsNotRenewedEndsAndAWriterComesIn) {
  client c = direct();
  rread_write_lock brief{c, "config", {.ttl = 700ms, .renew = false}};
  const lease dead = brief.read_lock().acquire();
  rread_write_lock config{c, "config"};
  const auto began = runtime::now();
  EXPECT_TRUE(config.write_lock().acquire(20s).held());
  EXPECT_LT(runtime::now() - began, 4s);
}

TEST_F(RedissonReadWriteHolding, DetachedLeaseIsAdopted) {
  client c = direct();
  rread_write_lock config{c, "config"};
  const auto ticket = config.read_lock().acquire().detach();
  client other = direct();
  lease held = rread_write_lock{other, "config"}.read_lock().adopt(ticket);
  EXPECT_TRUE(held.release());
  EXPECT_TRUE(becomes_free());
}

// ---- replies that are lost ---------------------------------------------------------------------

TEST_F(RedissonReadWriteHolding, RetriedAcquireIsOneHold) {
  client c = through_proxy({.operation_timeout = 400ms});
  rread_write_lock config{c, "config"};
  proxy.inject(fault::swallow_reply, rw_asks);
  lease held = config.read_lock().acquire();
  EXPECT_EQ(proxy.seen(rw_asks), 2U);
  EXPECT_EQ(server.command({"HLEN", "config"}), "2");
  EXPECT_TRUE(held.release());
  EXPECT_TRUE(becomes_free());
}

TEST_F(RedissonReadWriteHolding, RetriedUnlockKnowsThatItWasHeldToTheEnd) {
  client c = through_proxy({.operation_timeout = 400ms});
  rread_write_lock config{c, "config"};
  lease held = config.write_lock().acquire();
  proxy.inject(fault::swallow_reply, rw_releases);
  const auto said = held.release();
  EXPECT_TRUE(said) << said.error().message;
  EXPECT_EQ(proxy.seen(rw_releases), 2U);
}

TEST_F(RedissonReadWriteHolding, LateAskDoesNotOutliveItsRelease) {
  client c = through_proxy({.lock = {.ttl = 60s}, .operation_timeout = 400ms});
  rread_write_lock config{c, "config"};
  proxy.inject(fault::hold_request, rw_asks);
  lease held = config.write_lock().acquire();
  ASSERT_TRUE(held.release());
  proxy.let_go();
  let_pass(100ms);
  EXPECT_TRUE(becomes_free());
}

TEST_F(RedissonReadWriteHolding, UnansweredAcquireIsTakenBack) {
  client c =
      through_proxy({.lock = {.ttl = 60s}, .operation_timeout = 400ms, .unreachable_limit = 1s});
  rread_write_lock config{c, "config"};
  proxy.inject(fault::swallow_reply, rw_asks, 1000);
  EXPECT_NE(thrown_by([&] { (void)config.read_lock().acquire(); }), errc{});
  EXPECT_TRUE(becomes_free()) << "long before its TTL";
}

}  // namespace
}  // namespace holdfast::test
