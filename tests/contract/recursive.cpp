// A mutex that its owner may take again.
#include <future>
#include <mutex>
#include <thread>

#include "support/contract.hpp"

using namespace std::chrono_literals;

namespace holdfast::test {

CONTRACT(RecursiveMutexIsTakenAgainByItsThread) {
  client a = make_client(lock_options{.ttl = long_ttl});
  client b = make_client(lock_options{.ttl = long_ttl});
  recursive_mutex orders = a.recursive_mutex("orders");
  {
    const std::scoped_lock outer{orders};
    const auto token = orders.current()->token();
    {
      const std::unique_lock inner{orders, std::try_to_lock};
      ASSERT_TRUE(inner);
      ASSERT_TRUE(orders.try_lock_for(1h));
      EXPECT_EQ(orders.depth(), 3U);
      EXPECT_EQ(orders.current()->token(), token) << "one lease";
      orders.unlock();
    }
    EXPECT_EQ(orders.depth(), 1U);
    EXPECT_FALSE(b.mutex("orders").try_acquire()) << "only the last unlock gives it back";
    EXPECT_EQ(a.counters().acquisitions, 1U) << "the store was asked once";
  }
  EXPECT_EQ(orders.depth(), 0U);
  EXPECT_EQ(orders.current(), nullptr);
  EXPECT_TRUE(b.mutex("orders").try_acquire(patience));
  EXPECT_EQ(a.counters().releases, 1U);
}

CONTRACT(RecursiveMutexExcludesOtherThreadsAndHandlesAreTheSameLock) {
  client c = make_client(lock_options{.ttl = long_ttl});
  recursive_mutex orders = c.recursive_mutex("orders");
  recursive_mutex same = c.recursive_mutex("orders");
  orders.lock();
  same.lock();
  EXPECT_EQ(orders.depth(), 2U);
  auto other = std::async(std::launch::async, [&] {
    EXPECT_EQ(orders.current(), nullptr);
    EXPECT_FALSE(orders.try_lock());
    EXPECT_FALSE(orders.try_lock_for(20ms));
  });
  other.get();
  orders.unlock();
  same.unlock();
  EXPECT_TRUE(std::async(std::launch::async, [&] {
                if (!same.try_lock_for(patience)) return false;
                same.unlock();
                return true;
              }).get());
}

CONTRACT(RecursiveMutexBelongsToAnOwnerWhateverThreadCalls) {
  client c = make_client(lock_options{.ttl = long_ttl});
  const lock_owner task;
  recursive_mutex mine = c.recursive_mutex("orders").owned_by(task);
  recursive_mutex others = c.recursive_mutex("orders").owned_by(lock_owner{});
  recursive_mutex threads = c.recursive_mutex("orders");
  mine.lock();
  std::async(std::launch::async, [&] {
    mine.lock();
    EXPECT_EQ(mine.depth(), 2U);
  }).get();
  EXPECT_FALSE(others.try_lock());
  EXPECT_FALSE(threads.try_lock());
  std::async(std::launch::async, [&] { mine.unlock(); }).get();
  EXPECT_EQ(mine.depth(), 1U);
  mine.unlock();
  ASSERT_TRUE(others.try_lock_for(patience));
  others.unlock();
}

CONTRACT(RecursiveMutexIsNotTakenAgainOnceItIsLost) {
  client a = make_client(lock_options{.ttl = kept_ttl});
  client b = make_client(lock_options{.ttl = long_ttl});
  recursive_mutex orders = a.recursive_mutex("orders");
  orders.lock();
  orders.lock();
  watched_token lost{orders.current()->lost()};
  store().lose("orders");
  const auto next = b.mutex("orders").try_acquire(patience);
  ASSERT_TRUE(next);
  ASSERT_TRUE(lost.wait());
  EXPECT_EQ(thrown_by([&] { orders.lock(); }), errc::lease_lost);
  EXPECT_EQ(thrown_by([&] { (void)orders.try_lock(); }), errc::lease_lost);
  orders.unlock();
  orders.unlock();
  EXPECT_EQ(orders.depth(), 0U);
  EXPECT_FALSE(orders.try_lock()) << "the successor's lock was left alone";
  EXPECT_EQ(b.status("orders").holder.value().token, next->token());
}

CONTRACT(RecursiveMutexTellsUnlocksThatAreTooMany) {
  const auto seen = std::make_shared<recorder>();
  client c = make_client(client_options{.lock = {.ttl = long_ttl}, .observer = seen});
  recursive_mutex orders = c.recursive_mutex("orders");
  orders.lock();
  orders.unlock();
  EXPECT_FALSE(seen->count(event::kind::misuse));
  orders.unlock();
  EXPECT_TRUE(seen->await(event::kind::misuse));
}

}  // namespace holdfast::test
