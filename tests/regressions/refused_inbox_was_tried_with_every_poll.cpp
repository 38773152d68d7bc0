// A server that refuses SUBSCRIBE was asked again with every poll, each time on a connection of its
// own. And an attempt that failed after it had announced itself to the inbox was expected there for
// ever, so that a grant for it would have been kept.
#include <future>

#include "stores/redis/inbox.hpp"
#include "stores/redis/layout.hpp"
#include "support/proxied_redis.hpp"

using namespace std::chrono_literals;

namespace holdfast::test {

class OpeningTheInbox : public proxied_redis {};

TEST_F(OpeningTheInbox, IsNotTriedWithEveryPollWhenItIsRefused) {
  client holder = direct({.lock = {.ttl = 60s}});
  client waiter = through_proxy();
  const lease held = holder.mutex("orders").acquire();
  proxy.inject(fault::answer, "SUBSCRIBE", 1000, "-NOPERM no such luck\r\n");
  EXPECT_FALSE(waiter.mutex("orders").try_acquire(500ms));
  EXPECT_GE(proxy.seen(asks), 5U);
  EXPECT_LE(proxy.seen("SUBSCRIBE"), 4U);
}

TEST_F(OpeningTheInbox, AttemptThatFailedIsNotExpectedThere) {
  client holder = direct({.lock = {.ttl = 60s}});
  client waiter = through_proxy({.lock = {.ttl = 60s}});
  const stores::redis::lock_keys keys{"orders"};
  const lease held = holder.mutex("orders").acquire();
  lease other = holder.mutex("stock").acquire();
  ASSERT_EQ(
      server.command({"EVAL", "for i = 1, 10000 do redis.call('RPUSH', KEYS[1], 'x') end return 1",
                      "1", keys.queue}),
      "1");
  ASSERT_EQ(thrown_by([&] { static_cast<void>(waiter.mutex("orders").try_acquire(5s)); }),
            errc::overloaded);
  ASSERT_EQ(server.command({"DEL", keys.queue}), "1");
  // The refused entry, as it was sent: "id;claim;block;layout;inbox;joined;holder".
  const auto request = proxy.requests().back();
  const auto inbox_at = request.find(stores::redis::inbox_prefix);
  ASSERT_NE(inbox_at, std::string::npos);
  const auto text = request.substr(inbox_at - 49);
  const auto entry = stores::redis::queue_entry::parse(text);
  ASSERT_TRUE(entry);
  const std::string id{entry->id.text()};

  auto reads = std::async(std::launch::async,
                          [&] { return waiter.mutex("stock").try_acquire(patience).has_value(); });
  ASSERT_TRUE(eventually([&] { return exists(stores::redis::lock_keys{"stock"}.queue); }));
  // A grant for it all the same: somebody must give that back.
  ASSERT_EQ(server.command({"SET", "orders", id + ";holdfast=1;token=5;block=1;since=0;host=h"}),
            "OK");
  ASSERT_EQ(server.command({"PUBLISH", std::string{entry->inbox}, id + ";5;60000;1;orders"}), "1");
  EXPECT_TRUE(eventually([&] { return !exists("orders"); }, 10s));
  EXPECT_TRUE(other.release());
  EXPECT_TRUE(reads.get());
}

}  // namespace holdfast::test
