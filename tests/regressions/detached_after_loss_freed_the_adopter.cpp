// A lease that was already lost could be detached, and its ticket adopted while the store still had
// the lock. The lost lease went on to give back what it thought was left of it: the adopter's lock
// was free for anybody while the adopter believed to hold it.
#include <optional>
#include <string>

#include <gtest/gtest.h>

#include <holdfast/holdfast.hpp>

#include "support/open_client.hpp"
#include "support/redis_server.hpp"
#include "support/watch.hpp"

using namespace std::chrono_literals;

namespace holdfast::test {

class DetachedLease : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (GetParam() == "redis") server_.emplace();
  }
  [[nodiscard]] std::string url() const { return server_ ? server_->url() : "memory:detached"; }

  // Lost by its own clock long before the store lets go.
  static inline const lock_options lost_early{.ttl = 2s, .margin = 1s, .renew = false};
  static inline const lock_options kept{.ttl = 60s};

 private:
  std::optional<redis_server> server_;
};

TEST_P(DetachedLease, CannotBeALostOne) {
  client a{url()};
  lease held = a.mutex("orders", lost_early).acquire();
  watched_token lost{held.lost()};
  ASSERT_TRUE(lost.wait());
  EXPECT_EQ(thrown_by([&] { (void)held.detach(); }), errc::lease_lost);
  EXPECT_EQ(thrown_by([&] { (void)held.detach(); }), errc::lease_lost) << "nor the second time";
}

TEST_P(DetachedLease, CannotBeABrokenOne) {
  client a{url()};
  client b{url()};
  lease held = a.mutex("orders", kept).acquire();
  b.break_lock("orders", held.token());
  EXPECT_EQ(held.renew().error().code, errc::lease_lost);
  EXPECT_EQ(thrown_by([&] { (void)held.detach(); }), errc::lease_lost);
}

TEST_P(DetachedLease, IsNotGivenBackByItsDestructor) {
  client b{url()};
  client other{url()};
  std::optional<lease> adopted;
  {
    client a{url()};
    lease held = a.mutex("orders", kept).acquire();
    const lease_ticket ticket = held.detach();
    adopted = b.mutex("orders", kept).adopt(ticket);
    EXPECT_EQ(held.renew().error().code, errc::lease_lost) << "it is somebody else's to renew";
  }  // the lease, and then the client, which waits for its releases
  EXPECT_TRUE(adopted->held());
  EXPECT_FALSE(other.mutex("orders").try_acquire());
  EXPECT_TRUE(adopted->renew());
  EXPECT_TRUE(adopted->release());
}

TEST_P(DetachedLease, IsNotGivenBackOnceItsOwnTimeIsOver) {
  client b{url()};
  client other{url()};
  std::optional<lease> adopted;
  {
    client a{url()};
    lease held = a.mutex("orders", lost_early).acquire();
    const auto deadline = held.remaining();
    adopted = b.mutex("orders", kept).adopt(held.detach());
    let_pass(deadline);
    EXPECT_FALSE(held.held());
    EXPECT_EQ(held.why_lost(), loss::none) << "it was handed on, not lost";
    EXPECT_TRUE(held.release()) << "does nothing";
  }
  EXPECT_TRUE(adopted->held());
  EXPECT_FALSE(other.mutex("orders").try_acquire());
  EXPECT_TRUE(adopted->release());
}

INSTANTIATE_TEST_SUITE_P(On, DetachedLease, testing::Values("memory", "redis"),
                         [](const auto& test) { return test.param; });

}  // namespace holdfast::test
