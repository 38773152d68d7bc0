// A lease that went from thread to thread kept the giver's TTL, and the receiver's margin was taken
// off that: with a TTL of 1 s handed to a lock of 30 s, the deadline had passed on arrival.
#include <future>

#include "stores/redis/layout.hpp"
#include "support/proxied_redis.hpp"

using namespace std::chrono_literals;

namespace holdfast::test {

class HandedLease : public proxied_redis {
 protected:
  // What a thread has left that waited for another thread of the same client.
  [[nodiscard]] std::chrono::nanoseconds left_after_hand_over(lock_options from, lock_options to) {
    client c = direct();
    // Tokens for other threads are reserved by those who see them wait, so the first one is not
    // the giver.
    lease blocks = c.mutex("orders").acquire();
    auto gives = std::async(std::launch::async, [&] {
      return c.mutex("orders", from).acquire().release().has_value();
    });
    EXPECT_TRUE(eventually([&] { return c.counters().waiting_now == 1; }));
    auto takes = std::async(std::launch::async, [&] {
      const lease held = c.mutex("orders", to).acquire();
      EXPECT_TRUE(held.held());
      return held.remaining();
    });
    EXPECT_TRUE(eventually([&] { return c.counters().waiting_now == 2; }));
    EXPECT_TRUE(blocks.release());
    EXPECT_TRUE(gives.get());
    return takes.get();
  }
};

TEST_F(HandedLease, IsWorthHavingByTheReceiversOwnTerms) {
  EXPECT_GT(left_after_hand_over({.ttl = 1s}, {.ttl = 30s}), 0s);
}

TEST_F(HandedLease, HasItsWholeTtlWhereNothingRenewsIt) {
  EXPECT_GT(left_after_hand_over({.ttl = 2s}, {.ttl = 20s, .renew = false}), 10s);
  // By its margin alone, half of its time would do.
  EXPECT_GT(left_after_hand_over({.ttl = 20s}, {.ttl = 40s, .margin = 1s, .renew = false}), 25s);
}

TEST_F(HandedLease, IsValidForNoLongerThanTheReceiversOwnTtl) {
  EXPECT_LT(left_after_hand_over({.ttl = 60s}, {.ttl = 10s}), 10s);
  EXPECT_LT(left_after_hand_over({.ttl = 60s}, {.ttl = 10s, .renew = false}), 10s);
}

}  // namespace holdfast::test
