// What a client remembers of a lock went with its last handle and lease, also while the release was
// still under way. The next handle on the name knew nothing of it, asked on another connection,
// overtook the release and was told that the lock was busy: by nobody but itself.
#include <atomic>
#include <future>
#include <thread>
#include <vector>

#include "support/proxied_redis.hpp"

using namespace std::chrono_literals;

namespace holdfast::test {

namespace {

const std::string looks{stores::redis::scripts::inspect.sha1};

}  // namespace

class NewHandle : public proxied_redis {};

TEST_F(NewHandle, AsksBehindTheReleaseOfTheOneBefore) {
  client c = through_proxy({.lock = {.ttl = 60s}, .operation_timeout = 20s});
  const auto look = [&] { return std::async(std::launch::async, [&] { (void)c.status("x"); }); };
  {
    // A second connection, because the first is busy.
    proxy.inject(fault::hold_request, looks);
    const auto looking = look();
    ASSERT_TRUE(proxy.await_faults(1));
    (void)c.status("x");
    proxy.let_go();
  }
  {
    const lease held = c.mutex("orders").acquire();
    proxy.forget();
    proxy.inject(fault::hold_request, releases);
  }
  ASSERT_TRUE(proxy.await_faults(1));
  const auto looking = look();  // on the connection with the release: the other one is now nearer
  ASSERT_TRUE(proxy.await_request(looks));
  auto asking = std::async(std::launch::async, [&] { return c.mutex("orders").try_acquire(); });
  ASSERT_TRUE(proxy.await_request(asks));
  proxy.let_go();
  EXPECT_TRUE(asking.get());
}

// "Busy" was true when the server said so, and is not any more when it is read.
TEST_F(NewHandle, IsNotToldBusyByAReleaseThatWasAnsweredMeanwhile) {
  client c = through_proxy({.lock = {.ttl = 60s}, .operation_timeout = 20s, .release_budget = 20s});
  {
    const lease held = c.mutex("orders").acquire();
    proxy.cut_all();
    let_pass(50ms);  // what was used a moment ago is not looked at before it is used again
    proxy.forget();
    proxy.inject(fault::hold_request, releases);
  }
  ASSERT_TRUE(proxy.await_faults(1)) << "tried in the background, on a new connection";
  const auto before = server.calls_of("evalsha");
  proxy.delay_replies(500ms);
  auto asking = std::async(std::launch::async, [&] { return c.mutex("orders").try_acquire(); });
  ASSERT_TRUE(eventually([&] { return server.calls_of("evalsha") > before; }));
  let_pass(50ms);  // "busy" is on its way, and late
  proxy.delay_replies(0ms);
  proxy.let_go();
  EXPECT_TRUE(asking.get());
}

TEST_F(NewHandle, IsNeverToldBusyOnANameOfItsOwn) {
  constexpr int threads = 6;
  constexpr int rounds = 500;
  client c = direct({.lock = {.ttl = 60s}});
  std::atomic<int> busy{0};
  std::vector<std::thread> all;
  for (int i = 0; i < threads; ++i) {
    all.emplace_back([&, name = "private/" + std::to_string(i)] {
      for (int round = 0; round < rounds; ++round) {
        if (!c.mutex(name).try_acquire()) ++busy;
      }
    });
  }
  for (std::thread& t : all)
    t.join();
  EXPECT_EQ(busy, 0) << "of " << threads * rounds;
}

}  // namespace holdfast::test
