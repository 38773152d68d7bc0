// Several locks at once on a Redis server: how often it is asked.
#include <algorithm>
#include <future>

#include "support/proxied_redis.hpp"

using namespace std::chrono_literals;

namespace holdfast::test {

class AcquiredTogether : public proxied_redis {
 protected:
  [[nodiscard]] client patient() {
    return through_proxy({.lock = {.ttl = 60s}, .operation_timeout = patience});
  }
  [[nodiscard]] auto asked_for(const std::string& name) const {
    const auto requests = proxy.requests();
    return std::count_if(requests.begin(), requests.end(), [&](const std::string& one) {
      return one.find(asks) != one.npos && one.find("\r\n" + name + "\r\n") != one.npos;
    });
  }
};

TEST_F(AcquiredTogether, FreeLocksAreAskedForBeforeTheFirstAnswerComes) {
  client c = patient();
  // Opens all its connections.
  ASSERT_TRUE(try_acquire_all({c.mutex("x"), c.mutex("y"), c.mutex("z")}));
  proxy.forget();
  proxy.stall_replies(true);
  auto got = std::async(std::launch::async, [&] {
    return try_acquire_all({c.mutex("x"), c.mutex("y"), c.mutex("z")}, patience).has_value();
  });
  EXPECT_TRUE(proxy.await_request(asks, 3)) << "one round trip for all of them";
  proxy.stall_replies(false);
  EXPECT_TRUE(got.get());
  EXPECT_EQ(proxy.seen(asks), 3U) << "each was asked for once";
}

TEST_F(AcquiredTogether, WhatIsHeldIsNotAskedForAgain) {
  client c = patient();
  client other = direct({.lock = {.ttl = 60s}});
  auto busy = other.mutex("y").acquire();
  auto got = std::async(std::launch::async, [&] {
    return try_acquire_all({c.mutex("x"), c.mutex("y"), c.mutex("z")}, patience).has_value();
  });
  // Three at once; then y is waited for.
  EXPECT_TRUE(proxy.await_request(asks, 4));
  EXPECT_TRUE(exists("x")) << "comes before y by name";
  EXPECT_TRUE(eventually([&] { return !exists("z"); })) << "comes after it";
  ASSERT_TRUE(busy.release());
  EXPECT_TRUE(got.get());
  EXPECT_EQ(asked_for("x"), 1);
  EXPECT_EQ(asked_for("z"), 2);
}

}  // namespace holdfast::test
