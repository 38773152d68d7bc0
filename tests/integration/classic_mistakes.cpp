// Scenarios A, B, C, J and K: what hand-written locks get wrong, shown on one, then on Holdfast.
#include <thread>

#include "support/holder_process.hpp"
#include "support/naive_lock.hpp"
#include "support/proxied_redis.hpp"

using namespace std::chrono_literals;

namespace holdfast::test {

class ClassicMistakes : public proxied_redis {};

// A, the negative control: a fixed value and a DEL that comes after the lock has expired.
TEST_F(ClassicMistakes, NaiveUnlockDeletesTheNextHoldersLock) {
  naive_lock slow{server.where(), "naive"};
  naive_lock next{server.where(), "naive"};
  ASSERT_TRUE(slow.lock(50ms));
  ASSERT_TRUE(eventually([&] { return next.lock(60s); }));
  slow.unlock();
  EXPECT_FALSE(exists("naive")) << "the next holder's lock is gone while it believes to hold it";
}

// A: the release leaves in time, is held up on the way, and arrives when another holds the lock.
TEST_F(ClassicMistakes, LateReleaseLeavesTheNextHoldersLockAlone) {
  client slow = through_proxy({.lock = {.ttl = 2s, .renew = false}, .operation_timeout = 300ms});
  client next = direct({.lock = {.ttl = 60s}});
  lease old = slow.mutex("orders").acquire();
  proxy.inject(fault::hold_request, releases, 100);
  const auto answer = old.release();
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, errc::outcome_unknown);
  auto held = next.mutex("orders").try_acquire(patience);
  ASSERT_TRUE(held);
  const auto late = scripts_run();
  proxy.let_go();
  ASSERT_TRUE(eventually([&] { return scripts_run() > late; }));
  EXPECT_TRUE(exists("orders"));
  EXPECT_TRUE(held->renew());
  EXPECT_TRUE(held->release());
}

// B, the negative control: SETNX, a crash, and the EXPIRE that never comes.
TEST_F(ClassicMistakes, NaiveLockWithoutItsExpiryStaysForEver) {
  { naive_lock{server.where(), "naive"}.lock_without_expiry(); }  // and dies here
  EXPECT_EQ(pttl("naive"), -1ms);
}

// B: wherever the holder dies, the lock has a TTL.
TEST_F(ClassicMistakes, LockOfAHolderThatDiedWhileAcquiringExpires) {
  proxy.inject(fault::hold_reply, asks);
  holder_process dying{proxy.url(), "orders", 2s, holder_process::environment{}};
  ASSERT_TRUE(proxy.await_faults(1));
  ASSERT_TRUE(eventually([&] { return exists("orders"); }));
  dying.child().signal(SIGKILL);
  ASSERT_TRUE(dying.child().wait_exit());
  EXPECT_LE(pttl("orders"), 2s);
  EXPECT_NE(pttl("orders"), -1ms);
  client next = direct();
  EXPECT_TRUE(next.mutex("orders").try_acquire(patience));
}

// C, the negative control: the work takes longer than the TTL.
TEST_F(ClassicMistakes, NaiveHoldersOverlapWhenWorkOutlivesTheTtl) {
  naive_lock one{server.where(), "naive"};
  naive_lock other{server.where(), "naive"};
  ASSERT_TRUE(one.lock(50ms));
  const std::int64_t first = one.next_token();
  EXPECT_TRUE(eventually([&] { return other.lock(60s); })) << "both now believe to hold it";
  // What it could still have done: a token for each, and a resource that looks at them.
  EXPECT_GT(other.next_token(), first);
}

// C: when renewal fails after all, the holder hears of it before the next one begins.
TEST_F(ClassicMistakes, HolderHearsOfItsLossBeforeTheNextHolderBegins) {
  client a = through_proxy({.lock = {.ttl = 3s, .margin = 700ms}});
  client b = direct({.lock = {.ttl = 60s}});
  fence::gate resource;
  lease old = a.mutex("orders").acquire();
  ASSERT_TRUE(resource.accept(old.token()));
  watched_token lost{old.lost()};
  proxy.stall_requests(true);
  const auto next = b.mutex("orders").try_acquire(patience);
  const auto began = runtime::now();
  ASSERT_TRUE(next);
  ASSERT_TRUE(lost.wait());
  EXPECT_LT(lost.at(), began);
  EXPECT_TRUE(resource.accept(next->token()));
  EXPECT_FALSE(resource.accept(old.token()));
}

// J: renewal is by the owner only; somebody else's value is neither extended nor replaced.
TEST_F(ClassicMistakes, RenewalNeverExtendsSomebodyElsesLock) {
  client a = direct({.lock = {.ttl = 2'100ms}});
  lease held = a.mutex("orders").acquire();
  watched_token lost{held.lost()};
  ASSERT_EQ(server.command({"SET", "orders", "somebody else", "PX", "60000"}), "OK");
  ASSERT_TRUE(lost.wait());
  EXPECT_EQ(held.why_lost(), loss::taken);
  EXPECT_GT(pttl("orders"), 10s) << "its TTL is its own";
  EXPECT_EQ(server.command({"GET", "orders"}), "somebody else");
  EXPECT_EQ(held.renew().error().code, errc::lease_lost);
  EXPECT_EQ(held.release().error().code, errc::lease_lost);
  EXPECT_EQ(server.command({"GET", "orders"}), "somebody else");
}

TEST_F(ClassicMistakes, RenewalIsSeenInTheKeysTtl) {
  client a = direct({.lock = {.ttl = 5s, .renew = false}});
  lease held = a.mutex("orders").acquire();
  ASSERT_TRUE(eventually([&] { return pttl("orders") < 4'500ms; }));
  ASSERT_TRUE(held.renew());
  EXPECT_GT(pttl("orders"), 4'500ms);
  EXPECT_LE(pttl("orders"), 5s);
}

// K: the loser learns how long it may take, and does not spin.
TEST_F(ClassicMistakes, WaiterKnowsTheRemainingTimeAndDoesNotSpin) {
  client a = direct({.lock = {.ttl = 60s}});
  client b = through_proxy({.lock = {.ttl = 60s}});
  const lease held = a.mutex("orders").acquire();
  const auto started = runtime::now();
  EXPECT_FALSE(b.mutex("orders").try_acquire(2s));
  const auto waited_ms =
      std::chrono::duration_cast<std::chrono::milliseconds>(runtime::now() - started).count();
  // A spinning waiter asks some ten thousand times a second.
  EXPECT_LE(proxy.seen(asks), static_cast<std::size_t>(20 + waited_ms / 10));
  const auto remaining = b.status("orders").remaining;
  ASSERT_TRUE(remaining);
  EXPECT_GT(*remaining, 0ms);
  EXPECT_LE(*remaining, 60s);
}

// A foreign client on the same key excludes us and we it.
TEST_F(ClassicMistakes, PlainSetNxClientsAndHoldfastExcludeEachOther) {
  client ours = direct({.lock = {.ttl = 60s}});
  naive_lock theirs{server.where(), "orders"};
  {
    const lease held = ours.mutex("orders").acquire();
    EXPECT_FALSE(theirs.lock(60s));
  }
  ASSERT_TRUE(eventually([&] { return theirs.lock(60s); }));
  EXPECT_FALSE(ours.mutex("orders").try_acquire());
  const lock_status status = ours.status("orders");
  ASSERT_TRUE(status.holder);
  EXPECT_TRUE(status.holder->foreign);
  EXPECT_EQ(status.holder->value, "1");
  theirs.unlock();
  EXPECT_TRUE(ours.mutex("orders").try_acquire(patience));
}

}  // namespace holdfast::test
