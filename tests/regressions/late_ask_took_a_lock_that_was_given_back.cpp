// An ask went unanswered, the next one was granted, and its lease was released. When the first ask
// arrived after that, it took the lock for a process that did not want it any more, for a whole
// TTL.
#include <thread>

#include "support/proxied_redis.hpp"

using namespace std::chrono_literals;

namespace holdfast::test {

class LateAskAfterRelease : public proxied_redis {
 protected:
  static client_options impatient() {
    return {.lock = {.ttl = 60s}, .operation_timeout = 400ms, .unreachable_limit = 10s};
  }
};

TEST_F(LateAskAfterRelease, IsFollowedByAReleaseAlsoWhenTheNextWasGranted) {
  client c = through_proxy(impatient());
  proxy.inject(fault::hold_request, asks);
  lease held = c.mutex("orders").acquire();
  ASSERT_GE(proxy.seen(asks), 2U);
  EXPECT_TRUE(held.release());
  ASSERT_FALSE(exists("orders"));
  const auto before = scripts_run();
  proxy.let_go();
  ASSERT_TRUE(eventually([&] { return scripts_run() > before; })) << "the late ask arrived";
  EXPECT_TRUE(eventually([&] { return !exists("orders") && scripts_run() >= before + 2; }, 10s));
}

// What follows the late ask must not take away what the later ask was granted.
TEST_F(LateAskAfterRelease, LeavesTheLeaseOfTheNextAlone) {
  client c = through_proxy(impatient());
  proxy.inject(fault::hold_request, asks);
  lease held = c.mutex("orders").acquire();
  const auto before = scripts_run();
  proxy.let_go();
  ASSERT_TRUE(eventually([&] { return scripts_run() >= before + 2; }));
  EXPECT_TRUE(exists("orders"));
  EXPECT_TRUE(held.renew());
  EXPECT_TRUE(held.release());
  EXPECT_FALSE(exists("orders"));
}

// The late ask meets another holder, and joins the queue: it must leave it again.
TEST_F(LateAskAfterRelease, DoesNotStayInTheQueueOfTheNextHolder) {
  client c = through_proxy(impatient());
  client other = direct({.lock = {.ttl = 60s}});
  std::optional<lease> first = other.mutex("orders").acquire();
  // Joined, and asking again: held up.
  std::optional<lease> got;
  std::thread waits{[&] { got = c.mutex("orders").try_acquire(patience); }};
  ASSERT_TRUE(proxy.await_request(asks, 2));
  proxy.inject(fault::hold_request, asks);
  ASSERT_TRUE(proxy.await_faults(1));
  ASSERT_TRUE(first->release());
  waits.join();
  ASSERT_TRUE(got);
  EXPECT_TRUE(got->release());
  lease next = other.mutex("orders").acquire();
  const auto before = scripts_run();
  proxy.let_go();
  ASSERT_TRUE(eventually([&] { return scripts_run() >= before + 2; }));
  EXPECT_TRUE(eventually([&] { return other.status("orders").waiting == 0; }, 10s));
  EXPECT_TRUE(next.release());
  EXPECT_FALSE(exists("orders"));
}

}  // namespace holdfast::test
