// The first release() of a lost lease said errc::lease_lost, the second said that all was well. And
// renew() of a lease that had been given back gave as its reason a loss that never was.
#include <gtest/gtest.h>

#include <holdfast/holdfast.hpp>

#include "support/open_client.hpp"
#include "support/redis_server.hpp"
#include "support/watch.hpp"

using namespace std::chrono_literals;

namespace holdfast::test {

class ReleaseAfterLoss : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (GetParam() == "redis") server_.emplace();
  }
  [[nodiscard]] std::string url() const { return server_ ? server_->url() : "memory:loss"; }

 private:
  std::optional<redis_server> server_;
};

TEST_P(ReleaseAfterLoss, SaysLostEachTime) {
  client c{url()};
  lease held = c.mutex("orders", {.ttl = 200ms, .renew = false}).acquire();
  watched_token lost{held.lost()};
  ASSERT_TRUE(lost.wait());
  for (int i = 0; i < 3; ++i) {
    const auto said = held.release();
    ASSERT_FALSE(said) << "time " << i;
    EXPECT_EQ(said.error().code, errc::lease_lost);
  }
  EXPECT_EQ(held.why_lost(), loss::expired);
  EXPECT_EQ(held.renew().error().code, errc::lease_lost);
}

TEST_P(ReleaseAfterLoss, SaysLostEachTimeWhenTheLockWasBroken) {
  client c{url(), {.lock = {.ttl = 60s}}};
  client other{url()};
  lease held = c.mutex("orders").acquire();
  other.break_lock("orders", held.token());
  EXPECT_EQ(held.renew().error().code, errc::lease_lost);
  for (int i = 0; i < 3; ++i) {
    const auto said = held.release();
    ASSERT_FALSE(said) << "time " << i;
    EXPECT_EQ(said.error().code, errc::lease_lost);
  }
}

TEST_P(ReleaseAfterLoss, LeavesTheNextHolderAlone) {
  client c{url()};
  client other{url(), {.lock = {.ttl = 60s}}};
  lease held = c.mutex("orders", {.ttl = 200ms, .renew = false}).acquire();
  auto next = other.mutex("orders").try_acquire(patience);
  ASSERT_TRUE(next);
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(held.release().error().code, errc::lease_lost);
  EXPECT_TRUE(next->renew());
  EXPECT_TRUE(next->release());
}

TEST_P(ReleaseAfterLoss, LeaseGivenBackIsNotCalledLost) {
  client c{url()};
  lease held = c.mutex("orders").acquire();
  ASSERT_TRUE(held.release());
  EXPECT_TRUE(held.release()) << "does nothing";
  EXPECT_EQ(held.why_lost(), loss::none);
  const auto said = held.renew();
  ASSERT_FALSE(said);
  EXPECT_EQ(said.error().code, errc::lease_lost);
  EXPECT_NE(said.error().message.find("given back"), std::string::npos) << said.error().message;
  EXPECT_EQ(thrown_by([&] { (void)held.detach(); }), errc::lease_lost);
}

INSTANTIATE_TEST_SUITE_P(On, ReleaseAfterLoss, testing::Values("memory", "redis"),
                         [](const auto& test) { return test.param; });

}  // namespace holdfast::test
