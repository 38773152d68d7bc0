// The std TimedLockable side of a mutex.
#include <mutex>
#include <thread>

#include "support/contract.hpp"

using namespace std::chrono_literals;

namespace holdfast::test {

CONTRACT(ScopedLockHoldsAndReleases) {
  client a = make_client(lock_options{.ttl = long_ttl});
  client b = make_client(lock_options{.ttl = long_ttl});
  mutex orders = a.mutex("orders");
  {
    const std::scoped_lock guard{orders};
    EXPECT_FALSE(b.mutex("orders").try_acquire());
    ASSERT_NE(orders.current(), nullptr);
    EXPECT_TRUE(orders.current()->held());
    EXPECT_EQ(orders.current()->token(), b.status("orders").holder.value().token);
  }
  EXPECT_EQ(orders.current(), nullptr);
  EXPECT_TRUE(b.mutex("orders").try_acquire(patience));
}

CONTRACT(ScopedLockOfTwoMutexesNeverDeadlocks) {
  client a = make_client(lock_options{.ttl = long_ttl});
  client b = make_client(lock_options{.ttl = long_ttl});
  constexpr int rounds = 10;
  int shared = 0;  // guarded by either
  const auto work = [&](client& c, const char* first, const char* second) {
    mutex x = c.mutex(first);
    mutex y = c.mutex(second);
    for (int i = 0; i < rounds; ++i) {
      const std::scoped_lock both{x, y};
      ++shared;
    }
  };
  std::thread one{[&] { work(a, "x", "y"); }};
  std::thread other{[&] { work(b, "y", "x"); }};
  one.join();
  other.join();
  EXPECT_EQ(shared, 2 * rounds);
}

CONTRACT(UniqueLockTriesAndTimesOut) {
  client a = make_client(lock_options{.ttl = long_ttl});
  client b = make_client(lock_options{.ttl = long_ttl});
  mutex mine = a.mutex("orders");
  mutex theirs = b.mutex("orders");
  std::unique_lock held{mine, std::try_to_lock};
  ASSERT_TRUE(held);
  EXPECT_FALSE((std::unique_lock<mutex>{theirs, std::try_to_lock}));
  EXPECT_FALSE((std::unique_lock<mutex>{theirs, 50ms}));
  EXPECT_FALSE(theirs.try_lock_until(std::chrono::system_clock::now() + 50ms));
  EXPECT_FALSE(theirs.try_lock_until(std::chrono::steady_clock::now() - 1s));
  EXPECT_FALSE(theirs.try_lock_for(-1h));
  held.unlock();
  EXPECT_TRUE((std::unique_lock<mutex>{theirs, patience}));
}

CONTRACT(TryLockForWaitsForTheHolder) {
  const auto seen = std::make_shared<recorder>();
  client a = make_client(lock_options{.ttl = long_ttl});
  client b = make_client(client_options{.lock = {.ttl = long_ttl}, .observer = seen});
  mutex mine = a.mutex("orders");
  mine.lock();
  bool got = false;
  std::thread waiter{[&] {
    mutex theirs = b.mutex("orders");
    got = theirs.try_lock_for(std::chrono::hours{24 * 365 * 1000});
    if (got) theirs.unlock();
  }};
  EXPECT_TRUE(seen->await(event::kind::waiting));
  mine.unlock();
  waiter.join();
  EXPECT_TRUE(got);
}

CONTRACT(StdLockTakesSeveral) {
  client a = make_client(lock_options{.ttl = long_ttl});
  client b = make_client();
  mutex x = a.mutex("x");
  mutex y = a.mutex("y");
  mutex z = a.mutex("z");
  std::lock(x, y, z);
  for (const char* name : {"x", "y", "z"})
    EXPECT_FALSE(b.mutex(name).try_acquire()) << name;
  for (mutex* m : {&x, &y, &z})
    m->unlock();
  EXPECT_TRUE(b.mutex("y").try_acquire(patience));
}

CONTRACT(LockingTwiceInOneThreadIsAnErrorNotADeadlock) {
  client c = make_client(lock_options{.ttl = long_ttl});
  mutex one = c.mutex("orders");
  mutex same = c.mutex("orders");
  one.lock();
  EXPECT_EQ(thrown_by([&] { one.lock(); }), errc::would_deadlock);
  EXPECT_EQ(thrown_by([&] { same.lock(); }), errc::would_deadlock) << "handles are the same lock";
  EXPECT_FALSE(one.try_lock());
  one.unlock();
  same.lock();
  same.unlock();
}

CONTRACT(LockBelongsToTheThreadThatLocked) {
  const auto seen = std::make_shared<recorder>();
  client c = make_client(client_options{.lock = {.ttl = long_ttl}, .observer = seen});
  client b = make_client();
  mutex orders = c.mutex("orders");
  orders.lock();
  std::thread other{[&] {
    EXPECT_EQ(orders.current(), nullptr);
    EXPECT_FALSE(orders.try_lock());
    orders.unlock();  // not its own
  }};
  other.join();
  EXPECT_TRUE(seen->await(event::kind::misuse));
  EXPECT_TRUE(orders.current()->held());
  EXPECT_FALSE(b.mutex("orders").try_acquire());
  orders.unlock();
}

CONTRACT(LockTimesOutAtTheClientsWaitLimit) {
  client a = make_client(lock_options{.ttl = long_ttl});
  client b = make_client(client_options{.wait_limit = 200ms});
  const lease held = a.mutex("orders").acquire();
  mutex theirs = b.mutex("orders");
  EXPECT_EQ(thrown_by([&] { theirs.lock(); }), errc::timed_out);
  EXPECT_EQ(theirs.current(), nullptr);
}

CONTRACT(CurrentShowsTheLossToAScopedLocksUser) {
  client a = make_client(lock_options{.ttl = kept_ttl});
  mutex orders = a.mutex("orders");
  const std::scoped_lock guard{orders};
  watched_token lost{orders.current()->lost()};
  store().lose("orders");
  ASSERT_TRUE(lost.wait());
  ASSERT_NE(orders.current(), nullptr);
  EXPECT_FALSE(orders.current()->held());
}

CONTRACT(UnlockAfterALossLeavesTheSuccessorAlone) {
  client a = make_client(lock_options{.ttl = kept_ttl});
  client b = make_client(lock_options{.ttl = long_ttl});
  mutex orders = a.mutex("orders");
  std::optional<lease> next;
  {
    const std::scoped_lock guard{orders};
    watched_token lost{orders.current()->lost()};
    store().lose("orders");
    next = b.mutex("orders").try_acquire(patience);
    ASSERT_TRUE(next);
    ASSERT_TRUE(lost.wait());
  }
  EXPECT_EQ(orders.current(), nullptr);
  EXPECT_FALSE(a.mutex("orders").try_acquire()) << "comes after whatever unlock() sent";
  EXPECT_TRUE(next->renew());
  EXPECT_EQ(b.status("orders").holder.value().token, next->token());
  // The mutex is usable again.
  EXPECT_TRUE(next->release());
  orders.lock();
  EXPECT_GT(orders.current()->token(), next->token());
  orders.unlock();
}

}  // namespace holdfast::test
