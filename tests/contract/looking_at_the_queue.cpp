// status() shows who waits, in order.
#include <unistd.h>

#include <future>

#include "support/contract.hpp"

using namespace std::chrono_literals;

namespace holdfast::test {

// How many, on every store; who and in which order, where the order is promised.
CONTRACT(StatusShowsWhoWaits) {
  client holder = make_client(lock_options{.ttl = long_ttl});
  client first = make_client(lock_options{.ttl = long_ttl, .label = "first; in\nline"});
  client second = make_client(lock_options{.ttl = long_ttl, .label = "second"});
  client looks = make_client();
  lease held = holder.mutex("orders").acquire();
  EXPECT_EQ(looks.status("orders").waiting, 0U);

  const auto wait = [](client& c) {
    return std::async(std::launch::async, [&c] { return c.mutex("orders").try_acquire(patience); });
  };
  const auto waiting = [&](std::size_t count) {
    return eventually([&] { return looks.status("orders").waiting == count; });
  };
  auto one = wait(first);
  ASSERT_TRUE(waiting(1));
  auto two = wait(second);
  ASSERT_TRUE(waiting(2));

  if (looks.guarantees().fifo) {
    const auto status = looks.status("orders");
    ASSERT_EQ(status.waiters.size(), 2U);
    EXPECT_EQ(status.waiters[0].label, "first; in\nline");
    EXPECT_EQ(status.waiters[1].label, "second");
    for (const auto& who : status.waiters) {
      EXPECT_FALSE(who.host.empty());
      EXPECT_EQ(who.pid, ::getpid());
      EXPECT_LT(std::chrono::abs(std::chrono::system_clock::now() - who.since), 1min);
    }
    EXPECT_LE(status.waiters[0].since, status.waiters[1].since);
  }
  const auto listed = looks.list("ord*");
  ASSERT_EQ(listed.size(), 1U);
  EXPECT_EQ(listed[0].waiting, 2U);

  EXPECT_TRUE(held.release());
  EXPECT_TRUE(one.get());
  EXPECT_TRUE(two.get());
  EXPECT_TRUE(eventually([&] { return looks.status("orders").waiting == 0; }));
}

}  // namespace holdfast::test
