// What only a store with sessions shows: the reasons why the store interface looks as it does.
#include <optional>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "support/open_client.hpp"
#include "support/session_server.hpp"
#include "support/watch.hpp"

using namespace std::chrono_literals;

namespace holdfast::test {

class SessionStore : public testing::Test {
 protected:
  session_server server;
  const std::string url = "session:" + server.socket_path();
};

TEST_F(SessionStore, LeaseCountsTheTtlThatTheServerGranted) {
  client c = open_client(url, {.lock = {.ttl = 740ms, .renew = false}});
  const lease held = c.mutex("orders").acquire();
  EXPECT_LE(held.remaining(), 500ms) << "740 ms is two whole ticks";
}

TEST_F(SessionStore, OneKeepAliveRenewsEveryLease) {
  client c = open_client(url, {.lock = {.ttl = 2'000ms}});
  std::vector<lease> all;
  for (int i = 0; i < 50; ++i)
    all.push_back(c.mutex("lock/" + std::to_string(i)).acquire());
  ASSERT_TRUE(eventually([&] { return c.counters().renewals >= 300; }));
  EXPECT_LE(server.keep_alives(), c.counters().renewals / 10);
  for (const lease& one : all)
    EXPECT_TRUE(one.held());
  EXPECT_EQ(server.sessions(), 1U);
}

// Far from any renewal, so only the push can have told.
TEST_F(SessionStore, LossIsHeardFromTheServer) {
  client c = open_client(url, {.lock = {.ttl = 60'000ms}});
  lease held = c.mutex("orders").acquire();
  watched_token lost{held.lost()};
  server.forget();
  ASSERT_TRUE(lost.wait(15s));
  EXPECT_EQ(held.why_lost(), loss::session);
  EXPECT_FALSE(held.held());
}

// The lease shows its loss a moment before everybody has been told of it. A sanitizer sees it if
// that goes on in a client that is gone.
TEST_F(SessionStore, ClientMayGoWhileALossIsTold) {
  for (int i = 0; i < 200; ++i) {
    std::optional<client> c{open_client(url, {.lock = {.ttl = 60'000ms}})};
    std::optional<lease> held{c->mutex("orders").acquire()};
    server.forget();
    const auto give_up = std::chrono::steady_clock::now() + patience;
    while (held->held() && std::chrono::steady_clock::now() < give_up)
      std::this_thread::yield();
    ASSERT_FALSE(held->held());
    held.reset();
    c.reset();
  }
}

TEST_F(SessionStore, CancelledWaitRemovesItsNode) {
  client a = open_client(url, {.lock = {.ttl = 60'000ms}});
  client b = open_client(url, {.lock = {.ttl = 60'000ms}});
  const lease held = a.mutex("orders").acquire();
  EXPECT_FALSE(b.mutex("orders").try_acquire(50ms));
  EXPECT_EQ(server.nodes("orders"), 1U);
}

TEST_F(SessionStore, WaiterIsServedWhenItsPredecessorsSessionEnds) {
  const auto seen = std::make_shared<recorder>();
  client a = open_client(url, {.lock = {.ttl = 1'000ms, .renew = false}});
  client b = open_client(url, {.lock = {.ttl = 60'000ms}, .observer = seen});
  const lease held = a.mutex("orders").acquire();
  const auto next = b.mutex("orders").try_acquire(patience);
  ASSERT_TRUE(next);
  EXPECT_FALSE(held.held());
  EXPECT_GT(next->token(), held.token());
}

TEST_F(SessionStore, LeasesSurviveACutConnection) {
  client c = open_client(url, {.lock = {.ttl = 4'000ms}});
  lease held = c.mutex("orders").acquire();
  server.cut_connections();
  const auto before = c.counters().renewals;
  ASSERT_TRUE(eventually([&] { return c.counters().renewals > before; }));
  EXPECT_TRUE(held.held());
  EXPECT_EQ(server.sessions(), 1U);
  EXPECT_TRUE(held.release());
}

TEST_F(SessionStore, WaiterLongerThanItsSessionTtlStaysInTheQueue) {
  const auto seen = std::make_shared<recorder>();
  client a = open_client(url, {.lock = {.ttl = 60'000ms}});
  client b = open_client(url, {.lock = {.ttl = 1'000ms}, .observer = seen});
  lease held = a.mutex("orders").acquire();
  std::optional<lease> got;
  std::thread waiter{[&] { got = b.mutex("orders").try_acquire(patience); }};
  EXPECT_TRUE(seen->await(event::kind::waiting));
  let_pass(2'500ms);
  EXPECT_EQ(server.nodes("orders"), 2U);
  EXPECT_TRUE(held.release());
  waiter.join();
  EXPECT_TRUE(got);
}

}  // namespace holdfast::test
