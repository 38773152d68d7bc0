// Two grants in one microsecond of the server's clock. The token is the clock's unless the counter
// is there already, so that a comparison that forgets "equal" gives the same token twice.
#include <vector>

#include "support/proxied_redis.hpp"
#include "support/set_clock.hpp"

namespace holdfast::test {

TEST(TokenOfAFrozenClock, RisesWithEveryGrant) {
  const set_clock frozen{1'700'000'000'000'000};
  const redis_server server{frozen.on()};
  client c{server.url()};
  std::vector<fencing_token> tokens;
  for (int i = 0; i < 4; ++i) {
    lease held = c.mutex("orders").acquire();
    tokens.push_back(held.token());
    ASSERT_TRUE(held.release());
  }
  for (std::size_t i = 1; i < tokens.size(); ++i)
    EXPECT_GT(tokens[i], tokens[i - 1]) << i;
}

}  // namespace holdfast::test
