// A renewal waited for its answer as long as any request may, also when the lease ended before
// that. With one stuck connection and a TTL below the operation timeout the lease was lost, though
// a new connection would have worked all the while.
#include "support/proxied_redis.hpp"

using namespace std::chrono_literals;

namespace holdfast::test {

class StuckRenewal : public proxied_redis {
 protected:
  // The operation timeout is longer than any lease here lives.
  const client_options patient{.lock = {.ttl = 4s}, .operation_timeout = 10s};
};

TEST_F(StuckRenewal, IsTriedOnANewConnectionBeforeTheLeaseEnds) {
  client c = through_proxy(patient);
  const lease held = c.mutex("orders").acquire();
  watched_token lost{held.lost()};
  ASSERT_TRUE(eventually([&] { return c.counters().renewals > 0; }));
  proxy.inject(fault::hold_request, renews);  // and all behind it on that connection
  ASSERT_TRUE(proxy.await_faults(1));
  const auto before = c.counters().renewals;
  EXPECT_TRUE(eventually([&] { return c.counters().renewals > before || lost.has_fired(); }));
  EXPECT_TRUE(held.held());
  EXPECT_FALSE(lost.has_fired());
  EXPECT_GE(c.counters().renewal_failures, 1U);
  EXPECT_TRUE(exists("orders"));
}

TEST_F(StuckRenewal, SurvivesAConnectionThatIsNeverGreeted) {
  client c = through_proxy(patient);
  proxy.inject(fault::hold_request, "HELLO");  // the renewals' first connection
  const lease held = c.mutex("orders").acquire();
  watched_token lost{held.lost()};
  ASSERT_TRUE(proxy.await_faults(1));
  EXPECT_TRUE(eventually([&] { return c.counters().renewals > 0 || lost.has_fired(); }));
  EXPECT_TRUE(held.held());
  EXPECT_FALSE(lost.has_fired());
}

}  // namespace holdfast::test
