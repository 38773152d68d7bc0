// The users of a semaphore were killed, holders and waiters, and were started again with another
// number of permits. What the dead waiters had left in the queue counted as use, and the first of
// the new users was told that the semaphore was in use with the old number.
#include <gtest/gtest.h>

#include "stores/redis/layout.hpp"
#include "support/proxied_redis.hpp"

using namespace std::chrono_literals;

namespace holdfast::test {
namespace {

class SemaphoresNumber : public proxied_redis {
 protected:
  // A semaphore of one permit, whose holder is gone but for its key.
  void leave_dead_holder() const {
    client before = direct({.lock = {.ttl = 1s, .margin = 10ms, .renew = false}});
    (void)before.semaphore("slots", 1).acquire().detach();
    const auto ends = server.command({"HGET", "slots", "#soonest"});
    ASSERT_TRUE(eventually([&] { return std::to_string(runtime::wall_ms().count()) > ends; }));
    ASSERT_EQ(server.command({"PEXPIRE", "slots", "60000"}), "1") << "it is left";
  }
  // As its process wrote it.
  void add_waiter() const {
    stores::redis::queue_entry entry;
    entry.id = *core::owner_id::parse(id);
    entry.claim = 60s;
    entry.block = 0;
    entry.inbox = inbox;
    entry.holder = "permits=1;host=other;pid=1;label=";
    const auto now = std::to_string(runtime::wall_ms().count());
    ASSERT_EQ(server.command({"HSET", keys.waiters, id, now}), "1");
    ASSERT_EQ(server.command({"RPUSH", keys.queue, entry.text()}), "1");
  }

  const std::string id = std::string(32, 'a');
  const std::string inbox = std::string{stores::redis::inbox_prefix} + std::string(32, 'd');
  const stores::redis::lock_keys keys{"slots"};
};

TEST_F(SemaphoresNumber, IsNotKeptByTheDead) {
  leave_dead_holder();
  add_waiter();
  client after = direct();
  EXPECT_TRUE(after.semaphore("slots", 2).try_acquire(2, 0s));
}

TEST_F(SemaphoresNumber, IsKeptByAWaiterThatListens) {
  leave_dead_holder();
  add_waiter();
  raw_redis waiter{server.where()};
  ASSERT_FALSE(waiter.command({"SUBSCRIBE", inbox}).is_error());
  client after = direct();
  EXPECT_EQ(thrown_by([&] { (void)after.semaphore("slots", 2).try_acquire(); }),
            errc::invalid_argument);
  const auto told = waiter.receive();
  ASSERT_EQ(told.items.size(), 3U);
  EXPECT_EQ(told.items[2].text.substr(0, id.size()), id) << "what came free is its own";
}

}  // namespace
}  // namespace holdfast::test
