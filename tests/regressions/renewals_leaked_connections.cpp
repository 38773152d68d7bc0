// A renewal that was not answered in time gave its connection up, and nobody ever closed it: the
// renewals' connections were not among those looked after. Each stall cost a descriptor for good.
#include <filesystem>

#include "support/proxied_redis.hpp"

using namespace std::chrono_literals;

namespace holdfast::test {

namespace {

// Of this process, with those of the proxy, which go when the client's do.
std::ptrdiff_t open_descriptors() {
  using iterator = std::filesystem::directory_iterator;
  return std::distance(iterator{"/proc/self/fd"}, iterator{});
}

}  // namespace

class StalledRenewals : public proxied_redis {};

TEST_F(StalledRenewals, LeakNoConnections) {
  client c = through_proxy({.lock = {.ttl = 4s}, .operation_timeout = 300ms});
  lease held = c.mutex("orders").acquire();
  ASSERT_TRUE(eventually([&] { return c.counters().renewals > 0; }));
  const auto before = open_descriptors();
  constexpr std::size_t stalls = 3;
  proxy.inject(fault::hold_reply, renews, stalls);
  ASSERT_TRUE(proxy.await_faults(stalls));
  proxy.let_go();  // the answers come, too late
  EXPECT_TRUE(eventually([&] { return open_descriptors() <= before; }, 10s))
      << open_descriptors() << " descriptors, " << before << " before";
  EXPECT_TRUE(held.held());
  EXPECT_GE(c.counters().renewal_failures, stalls - 1);
}

}  // namespace holdfast::test
