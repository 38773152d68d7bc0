// The store came back empty, and the holder heard of it only when its next renewal was due: another
// had the lock meanwhile, for up to a third of a TTL.
#include "support/proxied_redis.hpp"

using namespace std::chrono_literals;

namespace holdfast::test {

class EmptyStore : public proxied_redis {};

TEST_F(EmptyStore, IsNoticedWhenItsConnectionEnds) {
  client c = direct({.lock = {.ttl = 600s}});  // the next renewal is due in 200 s
  std::vector<lease> all;
  for (int i = 0; i < 150; ++i)
    all.push_back(c.mutex("lock/" + std::to_string(i)).acquire());
  ASSERT_TRUE(all.front().renew());
  // So that there is a connection for renewals: it is made by the first of them.
  server.kill9();
  server.restart();
  for (const lease& one : all) {
    watched_token lost{one.lost()};
    ASSERT_TRUE(lost.wait());
    EXPECT_EQ(one.why_lost(), loss::deleted);
  }
}

}  // namespace holdfast::test
