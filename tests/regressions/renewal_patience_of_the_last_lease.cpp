// Leases are renewed together, and the one that ends first says how long to wait for the answer.
// With the patience of the last one, a stuck connection cost the short lease beside a long one.
#include "support/proxied_redis.hpp"

using namespace std::chrono_literals;

namespace holdfast::test {

class RenewalBatch : public proxied_redis {
 protected:
  // A request that renews both, the short one first.
  [[nodiscard]] bool went_together() const {
    for (const auto& one : proxy.requests()) {
      const auto short_at = one.find("\r\nshort\r\n");
      const auto long_at = one.find("\r\nlong\r\n");
      if (one.find(renews) != std::string::npos && short_at != std::string::npos &&
          long_at != std::string::npos && short_at < long_at) {
        return true;
      }
    }
    return false;
  }
};

TEST_F(RenewalBatch, IsAsImpatientAsItsShortestLease) {
  constexpr std::chrono::milliseconds long_ttl = 15s;
  constexpr std::chrono::milliseconds short_ttl = 3s;
  client c = through_proxy({.operation_timeout = 20s});
  {
    const lease warm = c.mutex("warm", {.ttl = 1s}).acquire();  // connects the renewals
    ASSERT_TRUE(eventually([&] { return c.counters().renewals > 0; }));
  }
  bool together = false;
  for (int round = 0; round < 4 && !together; ++round) {
    proxy.forget();
    const auto had = c.counters().renewals;
    const lease outer = c.mutex("long", {.ttl = long_ttl}).acquire();
    ASSERT_TRUE(eventually([&] { return c.counters().renewals > had; }));  // its first is early
    // The short one is due a moment before the long one, which then travels with it.
    let_pass(long_ttl / 3 - short_ttl / 3 - 300ms);
    const lease inner = c.mutex("short", {.ttl = short_ttl}).acquire();
    watched_token lost{inner.lost()};
    proxy.inject(fault::hold_request, renews);  // and all behind it on that connection
    ASSERT_TRUE(proxy.await_faults(1));
    together = went_together();
    const auto before = c.counters().renewals;
    EXPECT_TRUE(eventually([&] { return c.counters().renewals > before || lost.has_fired(); }));
    EXPECT_FALSE(lost.has_fired()) << "a new connection would have worked all the while";
  }
  EXPECT_TRUE(together) << "never in one request: nothing was shown";
}

}  // namespace holdfast::test
