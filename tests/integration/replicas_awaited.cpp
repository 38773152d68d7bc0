// replicas=N: a grant counts only once as many replicas have it.
#include <atomic>
#include <shared_mutex>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <holdfast/holdfast.hpp>
#include <holdfast/redisson.hpp>

#include "support/fault_proxy.hpp"
#include "support/open_client.hpp"
#include "support/sentinel_group.hpp"

using namespace std::chrono_literals;

namespace holdfast::test {

namespace {

using testing::HasSubstr;

class ReplicasAwaited : public testing::Test {
 protected:
  [[nodiscard]] client made(const std::string& query) {
    return client{proxy.url() + "?" + query,
                  {.lock = {.ttl = 60s}, .operation_timeout = 20s, .unreachable_limit = 30s}};
  }
  [[nodiscard]] bool has(std::size_t server, const std::string& key) {
    return servers[server]->command({"EXISTS", key}) == "1";
  }
  // It is connected, and says nothing.
  void silence_replica() { servers[1]->pause(); }

  const std::vector<std::unique_ptr<redis_server>> servers = start_replicated(1);
  fault_proxy proxy{servers[0]->where()};
};

}  // namespace

TEST_F(ReplicasAwaited, ReplicaHasTheLockWhenItIsGranted) {
  client c = made("replicas=1&replica_timeout=10000");
  for (int i = 0; i < 20; ++i) {
    lease held = c.mutex("orders").acquire();
    EXPECT_TRUE(has(1, "orders"));
    EXPECT_TRUE(held.release());
  }
  EXPECT_EQ(proxy.seen("WAIT\r\n"), 20U);
  auto readers = c.shared_mutex("papers");
  const std::shared_lock reading{readers};
  EXPECT_TRUE(has(1, "papers"));
}

TEST_F(ReplicasAwaited, NothingIsWaitedForUnlessAsked) {
  client c = made("replicas=0");
  { const lease held = c.mutex("orders").acquire(); }
  EXPECT_EQ(proxy.seen("WAIT\r\n"), 0U);
}

TEST_F(ReplicasAwaited, GrantThatTooFewReplicasHaveIsGivenBack) {
  client c = made("replicas=2&replica_timeout=50");
  std::string said;
  EXPECT_EQ(thrown_by([&] { (void)c.mutex("orders").try_acquire(); }, &said), errc::read_only);
  EXPECT_THAT(said, HasSubstr("of the 2 replicas that replicas= "));
  EXPECT_FALSE(has(0, "orders"));
  // It may pass: the whole wait is used for it.
  EXPECT_EQ(thrown_by([&] { (void)c.mutex("orders").acquire(2s); }), errc::read_only);
  EXPECT_GE(proxy.seen("WAIT\r\n"), 3U);
  EXPECT_FALSE(has(0, "orders"));
}

TEST_F(ReplicasAwaited, ReplicaThatComesBackIsWaitedFor) {
  client c = made("replicas=1&replica_timeout=100");
  silence_replica();
  std::thread later{[&] {
    EXPECT_TRUE(proxy.await_request("WAIT\r\n", 2));
    servers[1]->resume();
  }};
  const auto held = c.mutex("orders").try_acquire(20s);
  later.join();
  ASSERT_TRUE(held);
  EXPECT_TRUE(has(1, "orders"));
}

// A grant that is handed over was written by the releaser's connection.
TEST_F(ReplicasAwaited, LockThatIsHandedOverIsWrittenAgainBeforeItCounts) {
  client holder{servers[0]->url(), {.lock = {.ttl = 60s}}};
  client waiting = made("replicas=1&replica_timeout=100");
  lease held = holder.mutex("orders").acquire();
  std::atomic<bool> granted{false};
  fencing_token token;
  bool replica_has_it = false;
  std::thread waiter{[&] {
    const lease got = waiting.mutex("orders").acquire(60s);
    granted = true;
    token = got.token();
    replica_has_it = has(1, "orders");
  }};
  EXPECT_TRUE(eventually([&] { return holder.status("orders").waiting == 1; }));
  silence_replica();
  EXPECT_TRUE(held.release());
  EXPECT_TRUE(proxy.await_request("WAIT\r\n", 2));
  EXPECT_FALSE(granted);
  servers[1]->resume();
  waiter.join();
  EXPECT_GT(token, held.token());
  EXPECT_TRUE(replica_has_it);
}

// As managed services have it.
TEST_F(ReplicasAwaited, ServerWithoutWaitIsAClearError) {
  proxy.inject(fault::answer, "WAIT\r\n", 1,
               "-ERR unknown command 'WAIT', with args beginning with: '1' '200'\r\n");
  client c = made("replicas=1");
  std::string said;
  EXPECT_EQ(thrown_by([&] { (void)c.mutex("orders").acquire(10s); }, &said), errc::incompatible);
  EXPECT_THAT(said, HasSubstr("has no command WAIT"));
  EXPECT_FALSE(has(0, "orders"));
}

// The answer to WAIT is lost: nothing is held, or the caller is told that it may be.
TEST_F(ReplicasAwaited, ConnectionThatBreaksWhileReplicasAreAwaitedHoldsNothing) {
  client c = made("replicas=1&replica_timeout=100");
  { const lease warm = c.mutex("warm").acquire(); }
  proxy.inject(fault::cut_before_reply, "WAIT\r\n");
  const auto held = c.mutex("orders").try_acquire(20s);
  ASSERT_TRUE(held);
  EXPECT_TRUE(has(1, "orders"));
}

TEST_F(ReplicasAwaited, LocksOfRedissonAreRefused) {
  client c = made("replicas=1");
  std::string said;
  EXPECT_EQ(thrown_by([&] { const redisson::rlock lock{c, "orders"}; }, &said), errc::unsupported);
  EXPECT_THAT(said, HasSubstr("replicas="));
}

}  // namespace holdfast::test
