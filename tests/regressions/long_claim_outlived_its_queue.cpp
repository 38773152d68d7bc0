// The keys of a queue live for ten minutes after the last sign of a waiter, but a waiter with a
// claim of an hour gave one every fifteen: it fell out of the queue and sat beside a free lock.
#include "client/open_store.hpp"
#include "client/url.hpp"
#include "runtime/clock.hpp"
#include "runtime/random.hpp"
#include "stores/redis/layout.hpp"
#include "support/proxied_redis.hpp"

using namespace std::chrono_literals;

namespace holdfast::test {

class LongClaim : public proxied_redis {};

TEST_F(LongClaim, AsksMoreOftenThanItsQueueExpires) {
  const lease held = direct().mutex("orders").acquire();
  const auto url = detail::parse_url(server.url());
  ASSERT_TRUE(url);
  const auto background = std::make_shared<runtime::background>(1);
  const auto store = detail::open_store(*url, background).value();
  store->on_events({});
  const auto lock = store->open("orders");
  ASSERT_TRUE(lock);
  const auto who = (*lock)->begin({.ttl = 1h, .may_wait = true, .claim_ttl = 1h});
  const auto answer = stores::wait_here<result<core::answer>>(
      [&](auto& by, auto done) { who->ask(runtime::now() + 10s, by, std::move(done)); });
  ASSERT_TRUE(answer);
  const auto& met = std::get<core::busy>(*answer);
  ASSERT_TRUE(met.queued);
  ASSERT_TRUE(met.ask_within);
  const stores::redis::lock_keys keys{"orders"};
  // Time for a lost message or two.
  EXPECT_LT(*met.ask_within * 3, pttl(keys.queue));
  EXPECT_LT(*met.ask_within * 3, pttl(keys.waiters));
  ASSERT_TRUE(stores::wait_here<result<core::removal>>(
      [&](auto& by, auto done) { who->withdraw(runtime::now() + 10s, by, std::move(done)); }));
  store->close();
  background->stop();
}

}  // namespace holdfast::test
