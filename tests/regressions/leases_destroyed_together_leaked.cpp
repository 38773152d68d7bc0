// A posted release that found as many requests under way as a connection takes was given up: of
// 5,000 leases destroyed at once 904 stayed until their TTL, and nobody was told.
#include <atomic>
#include <future>
#include <thread>

#include "client/open_store.hpp"
#include "client/url.hpp"
#include "runtime/clock.hpp"
#include "runtime/random.hpp"
#include "support/proxied_redis.hpp"

using namespace std::chrono_literals;

namespace holdfast::test {

class ManyLeases : public proxied_redis {};

TEST_F(ManyLeases, DestroyedTogetherAreAllGivenBack) {
  constexpr int many = 9000;
  client c = direct({.lock = {.ttl = 600s}});
  client looks = direct();
  std::vector<lease> all;
  all.reserve(many);
  for (int i = 0; i < many; ++i)
    all.push_back(c.mutex("lock/" + std::to_string(i)).acquire());
  // While the server does nothing, no reply makes room.
  server.pause();
  all.clear();
  server.resume();
  EXPECT_TRUE(eventually([&] { return looks.list("lock/*").empty(); }));
  EXPECT_EQ(c.counters().releases, static_cast<std::uint64_t>(many));
  EXPECT_EQ(c.counters().failures, 0U);
}

// What is given up after all is counted, and the observer hears of it.
TEST_F(ManyLeases, ReleaseThatIsGivenUpIsTold) {
  const auto watch = std::make_shared<recorder>();
  client c = through_proxy({.lock = {.ttl = 600s}, .release_budget = 300ms, .observer = watch});
  {
    const lease held = c.mutex("orders").acquire();
    proxy.inject(fault::answer, releases, 1000, "-BUSY Redis is busy running a script.\r\n");
  }
  ASSERT_TRUE(watch->await(event::kind::failed));
  EXPECT_EQ(watch->first(event::kind::failed)->lock, "orders");
  EXPECT_EQ(watch->first(event::kind::failed)->code, errc::store_busy);
  EXPECT_EQ(c.counters().failures, 1U);
}

// The client goes before the server has answered, and some were never sent.
TEST_F(ManyLeases, ReleasesThatAreLeftWhenTheClientGoesAreTold) {
  constexpr std::size_t many = 5000;
  const auto watch = std::make_shared<recorder>();
  std::vector<lease> all;
  {
    client c = direct({.lock = {.ttl = 600s}, .release_budget = 200ms, .observer = watch});
    for (std::size_t i = 0; i < many; ++i)
      all.push_back(c.mutex("lock/" + std::to_string(i)).acquire());
    server.pause();
    all.clear();
  }
  EXPECT_EQ(watch->count(event::kind::failed), many);
  server.resume();
}

// It was to be tried again by a thread that came to nothing else any more.
TEST_F(ManyLeases, ReleaseThatIsDroppedWithOtherWorkIsTold) {
  const auto url = detail::parse_url(server.url());
  ASSERT_TRUE(url);
  const auto background = std::make_shared<runtime::background>(1);
  const auto store = detail::open_store(*url, background).value();
  std::atomic<int> told{0};
  stores::store_events events;
  events.release_given_up = [&](std::string_view, const failure&) { ++told; };
  store->on_events(std::move(events));
  const auto lock = store->open("orders");
  ASSERT_TRUE(lock);
  const auto who = (*lock)->begin({.ttl = 600s});
  ASSERT_TRUE(stores::wait_here<result<core::answer>>(
      [&](auto& by, auto done) { who->ask(runtime::now() + 10s, by, std::move(done)); }));
  std::promise<void> begun;
  std::promise<void> over;
  ASSERT_TRUE(background->run([&] {
    begun.set_value();
    over.get_future().wait();
  }));
  begun.get_future().wait();
  server.pause();
  (*lock)->release_later(who->id(), runtime::now() + 600s);
  store->close();
  std::thread stops{[&] { background->stop(); }};
  EXPECT_TRUE(eventually([&] { return !background->start(); }));
  EXPECT_EQ(told, 0);
  over.set_value();
  stops.join();
  EXPECT_EQ(told, 1);
  server.resume();
}

// Passing: the server takes no more clients for a moment, runs a long script, cannot persist.
TEST_F(ManyLeases, ReleaseThatIsRefusedForAMomentIsTriedAgain) {
  for (const std::string said :
       {"-BUSY Redis is busy running a script.\r\n", "-MISCONF cannot persist\r\n",
        "-ERR max number of clients reached\r\n"}) {
    client c = through_proxy({.lock = {.ttl = 600s}, .release_budget = 20s});
    {
      const lease held = c.mutex("orders").acquire();
      proxy.inject(fault::answer, releases, 3, said);
    }
    EXPECT_TRUE(eventually([&] { return !exists("orders"); })) << said;
    EXPECT_EQ(c.counters().failures, 0U) << said;
  }
}

}  // namespace holdfast::test
