// redis://h1,h2: a master and its replicas, where a person decides which of them is the master.
// Scenario 22 is the negative control: the lock that everybody writes by hand has two holders.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <holdfast/fence.hpp>
#include <holdfast/holdfast.hpp>

#include "support/if_granted.hpp"
#include "support/naive_lock.hpp"
#include "support/open_client.hpp"
#include "support/sentinel_group.hpp"
#include "support/watch.hpp"

using namespace std::chrono_literals;

namespace holdfast::test {

namespace {

using testing::HasSubstr;

class MasterAndReplicas : public testing::Test {
 protected:
  [[nodiscard]] std::string address(std::size_t i) const {
    return "127.0.0.1:" + std::to_string(servers[i]->port());
  }
  // The replica first: the order says nothing.
  [[nodiscard]] std::string url() const { return "redis://" + address(1) + "," + address(0); }
  [[nodiscard]] client made(client_options options = {}) const {
    options.lock.ttl = 60s;
    options.unreachable_limit = 30s;
    return client{url(), std::move(options)};
  }
  [[nodiscard]] bool has(std::size_t server, const std::string& key) {
    return servers[server]->command({"EXISTS", key}) == "1";
  }
  // From now on the replica hears nothing of the master.
  void cut_replication() { ASSERT_EQ(servers[1]->command({"REPLICAOF", "127.0.0.1", "1"}), "OK"); }
  void promote() { ASSERT_EQ(servers[1]->command({"REPLICAOF", "NO", "ONE"}), "OK"); }
  void demote_old() {
    ASSERT_EQ(servers[0]->command({"REPLICAOF", "127.0.0.1", std::to_string(servers[1]->port())}),
              "OK");
  }

  const std::vector<std::unique_ptr<redis_server>> servers = start_replicated(1);
};

}  // namespace

TEST_F(MasterAndReplicas, OnlyTheMasterIsWrittenTo) {
  client c = made();
  const lease held = c.mutex("orders").acquire();
  EXPECT_TRUE(has(0, "orders"));
  EXPECT_EQ(servers[1]->calls_of("eval") + servers[1]->calls_of("evalsha"), 0U);
  EXPECT_THAT(c.guarantees().summary, HasSubstr("replicas"));
}

// The master dies before the replica has the key.
TEST_F(MasterAndReplicas, NaiveLockHasTwoHoldersAfterAFailover) {
  naive_lock first{servers[0]->where(), "naive"};
  cut_replication();
  ASSERT_TRUE(first.lock(60s));
  const auto token = first.next_token();
  servers[0]->kill9();
  promote();
  naive_lock second{servers[1]->where(), "naive"};
  EXPECT_TRUE(second.lock(60s)) << "the first still believes that it holds the lock";
  EXPECT_LE(second.next_token(), token) << "and a counter for a token gives it twice";
}

TEST_F(MasterAndReplicas, TokenTellsTheResourceWhichOfTwoHoldersIsLate) {
  client paused{"redis://" + address(0), {.lock = {.ttl = 60s}}};  // it hears of no failover
  cut_replication();
  const lease first = paused.mutex("orders").acquire();
  servers[0]->pause();
  promote();
  client c{"redis://" + address(1)};
  const lease second = c.mutex("orders").acquire();
  ASSERT_TRUE(first.held()) << "two believe that they hold it";
  EXPECT_GT(second.token(), first.token());
  fence::gate resource;
  EXPECT_TRUE(resource.accept(second.token()));
  EXPECT_FALSE(resource.accept(first.token()));
  servers[0]->resume();
}

TEST_F(MasterAndReplicas, ServerThatAPersonPromotesIsFollowed) {
  const auto seen = std::make_shared<recorder>();
  client c = made({.observer = seen});
  lease held = c.mutex("orders").acquire();
  ASSERT_TRUE(eventually([&] { return has(1, "orders"); }));
  const auto renewals = seen->count(event::kind::renewed);
  promote();
  demote_old();
  EXPECT_TRUE(seen->await(event::kind::renewed, renewals + 1)) << "checked there at once";
  EXPECT_TRUE(held.held());
  EXPECT_FALSE(c.mutex("orders").try_acquire());
  EXPECT_TRUE(held.release());
  EXPECT_TRUE(eventually([&] { return !has(1, "orders"); }));
}

// The old master was not told, and goes on for whoever still asks it.
TEST_F(MasterAndReplicas, OldMasterThatGoesOnIsLeft) {
  client c = made();
  { const lease warm = c.mutex("warm").acquire(); }
  promote();
  EXPECT_TRUE(eventually([&] {
    const auto got = if_granted(c, "orders");
    return got && has(1, "orders");
  }));
}

TEST_F(MasterAndReplicas, LeaseThatThePromotedServerHasNotIsToldLost) {
  client c = made();
  { const lease warm = c.mutex("warm").acquire(); }
  cut_replication();
  lease held = c.mutex("orders").acquire();
  watched_token lost{held.lost()};
  promote();
  demote_old();
  EXPECT_TRUE(lost.wait(20s));
  EXPECT_EQ(held.why_lost(), loss::deleted);
}

TEST_F(MasterAndReplicas, NoMasterIsWaitedFor) {
  cut_replication();
  servers[0]->kill9();
  client c = made({.operation_timeout = 2s});
  std::string said;
  EXPECT_EQ(thrown_by([&] { (void)c.mutex("orders").try_acquire(); }, &said), errc::read_only);
  EXPECT_THAT(said, HasSubstr("REPLICAOF NO ONE"));
  promote();
  EXPECT_TRUE(c.mutex("orders").try_acquire(20s));
}

TEST_F(MasterAndReplicas, IndependentServersAreRefused) {
  const redis_server other{{.tcp = true}};
  client c{"redis://" + address(0) + ",127.0.0.1:" + std::to_string(other.port())};
  std::string said;
  EXPECT_EQ(thrown_by([&] { (void)c.mutex("orders").try_acquire(); }, &said), errc::incompatible);
  EXPECT_THAT(said, HasSubstr("redlock://"));
}

}  // namespace holdfast::test
