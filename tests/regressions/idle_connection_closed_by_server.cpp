// A server that closes idle connections (`timeout`, CLIENT KILL, a proxy in between) made the next
// request fail with errc::outcome_unknown: it was written into a connection that was already over,
// and a busy lock was reported as an error.
#include <barrier>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <holdfast/holdfast.hpp>

#include "support/open_client.hpp"
#include "support/redis_server.hpp"
#include "support/watch.hpp"

using namespace std::chrono_literals;

namespace holdfast::test {

class IdleConnection : public testing::TestWithParam<std::string> {
 protected:
  [[nodiscard]] std::string url() const {
    return GetParam() == "tcp" ? server.tcp_url() : server.url();
  }
  // Every connection but the one that says so.
  void close_all() {
    let_pass(50ms);  // what was used a moment ago is not idle
    EXPECT_NE(server.command({"CLIENT", "KILL", "TYPE", "normal"}), "0");
  }

  redis_server server{{.tcp = true}};
  const client_options kept{.lock = {.ttl = 60s}};
};

TEST_P(IdleConnection, BusyLockIsBusy) {
  client a{url(), kept};
  client b{url(), kept};
  const lease held = a.mutex("orders").acquire();
  mutex orders = b.mutex("orders");
  ASSERT_FALSE(orders.try_acquire());
  for (int i = 0; i < 5; ++i) {
    close_all();
    EXPECT_FALSE(orders.try_acquire());
  }
  EXPECT_EQ(b.counters().failures, 0U);
}

TEST_P(IdleConnection, FreeLockIsGranted) {
  client c{url(), kept};
  for (int i = 0; i < 5; ++i) {
    auto got = c.mutex("orders").try_acquire();
    ASSERT_TRUE(got);
    ASSERT_TRUE(got->release());
    close_all();
  }
  EXPECT_TRUE(c.mutex("orders").try_acquire());
  EXPECT_EQ(c.counters().failures, 0U);
}

TEST_P(IdleConnection, StatusAndListAreAnswered) {
  client c{url(), kept};
  const lease held = c.mutex("orders").acquire();
  close_all();
  EXPECT_TRUE(c.status("orders").holder);
  close_all();
  EXPECT_EQ(c.list("*").size(), 1U);
}

TEST_P(IdleConnection, LeaseIsRenewedAndReleased) {
  client c{url(), kept};
  lease held = c.mutex("orders").acquire();
  close_all();
  EXPECT_TRUE(held.renew());
  close_all();
  EXPECT_TRUE(held.release());
  EXPECT_EQ(c.counters().renewal_failures, 0U);
}

TEST_P(IdleConnection, WatchdogRenewsWithoutAFailure) {
  client c{url(), {.lock = {.ttl = 2'100ms}}};
  const lease held = c.mutex("orders").acquire();
  ASSERT_TRUE(eventually([&] { return c.counters().renewals > 0; }));
  close_all();
  const auto before = c.counters().renewals;
  ASSERT_TRUE(eventually([&] { return c.counters().renewals > before; }));
  EXPECT_EQ(c.counters().renewal_failures, 0U);
}

TEST_P(IdleConnection, DestructorGivesBack) {
  client c{url(), kept};
  {
    const lease held = c.mutex("orders").acquire();
    close_all();
  }
  EXPECT_TRUE(c.mutex("orders").try_acquire());
}

TEST_P(IdleConnection, AllOfManyAreReplaced) {
  constexpr int threads = 8;
  client a{url(), kept};
  client b{url(), kept};
  const lease held = a.mutex("orders").acquire();
  const auto ask_all = [&] {
    std::barrier together{threads};
    std::vector<std::thread> all;
    for (int i = 0; i < threads; ++i) {
      all.emplace_back([&] {
        together.arrive_and_wait();
        std::string what;
        const auto ask = [&] { EXPECT_FALSE(b.mutex("orders").try_acquire()); };
        EXPECT_EQ(thrown_by(ask, &what), errc{}) << what;
      });
    }
    for (std::thread& t : all)
      t.join();
  };
  ask_all();
  close_all();
  EXPECT_FALSE(b.mutex("orders").try_acquire());
  close_all();
  ask_all();
  EXPECT_EQ(b.counters().failures, 0U);
}

INSTANTIATE_TEST_SUITE_P(Over, IdleConnection, testing::Values("tcp", "unix_socket"),
                         [](const auto& test) { return test.param; });

}  // namespace holdfast::test
