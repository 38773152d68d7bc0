// Masters of a Redis cluster that die or hang, and replicas that take their places.
#include <future>

#include <gtest/gtest.h>

#include <holdfast/holdfast.hpp>

#include "stores/redis/layout.hpp"
#include "support/naive_lock.hpp"
#include "support/redis_cluster.hpp"
#include "support/watch.hpp"

using namespace std::chrono_literals;

namespace holdfast::test {

namespace {

// Long enough that a busy machine does not look dead; the tests in which the cluster itself decides
// wait for it.
constexpr auto node_timeout = 3'000ms;

std::string name_on(redis_cluster& nodes, std::size_t node) {
  for (int i = 0;; ++i) {
    const auto name = "orders-" + std::to_string(i);
    if (nodes.master_of(name) == node) return name;
  }
}

std::future<std::optional<lease>> wait_for(client& by, const std::string& name) {
  return std::async(std::launch::async,
                    [&by, name] { return by.mutex(name).try_acquire(patience); });
}

// Everything that was written up to now is at the replica.
void replicate(redis_server& master) {
  raw_redis connection{master.where()};
  (void)connection.command({"SET", "unimportant", "1"});
  (void)connection.command({"WAIT", "1", "20000"});
}

}  // namespace

// One deployment for all: its nodes take seconds to meet. Each test uses a master of its own, 0, 1
// or 2, whose replica is 3, 4 or 5.
class ClusterFailover : public testing::Test {
 protected:
  static redis_cluster& nodes() {
    static redis_cluster all{{.replicas = 1, .node_timeout = node_timeout}};
    return all;
  }
  // A lease that fails to be renewed is tried again in time, and a request that hangs is given up
  // soon.
  static client_options options() {
    return {.lock = {.ttl = 20s}, .operation_timeout = 1s, .unreachable_limit = patience};
  }
};

// The cluster decides by itself: the others notice that the master is gone, and vote.
TEST_F(ClusterFailover, LeaseAndWaiterOutliveAMasterThatIsKilled) {
  const auto name = name_on(nodes(), 0);
  client holder{nodes().url(), options()};
  client other{nodes().url(), options()};
  lease held = holder.mutex(name).acquire();
  auto next = wait_for(other, name);
  ASSERT_TRUE(eventually([&] {
    return nodes().on_master_of(name, {"LLEN", stores::redis::lock_keys{name}.queue}) == "1";
  }));
  replicate(nodes()[0]);
  nodes()[0].kill9();
  ASSERT_TRUE(nodes().await_promotion(3));
  EXPECT_TRUE(eventually([&] { return held.renew().has_value(); }));
  EXPECT_TRUE(held.held());
  const auto token = held.token();
  EXPECT_TRUE(held.release());
  auto got = next.get();
  ASSERT_TRUE(got);
  EXPECT_GT(got->token(), token);
}

// It hangs: connections stay, nothing is answered, and nothing says so.
TEST_F(ClusterFailover, MasterThatHangsIsReplacedUnderWaiterAndHolder) {
  const auto name = name_on(nodes(), 1);
  client holder{nodes().url(), options()};
  client other{nodes().url(), options()};
  lease held = holder.mutex(name).acquire();
  auto next = wait_for(other, name);
  ASSERT_TRUE(eventually([&] {
    return nodes().on_master_of(name, {"LLEN", stores::redis::lock_keys{name}.queue}) == "1";
  }));
  replicate(nodes()[1]);
  nodes()[1].pause();
  ASSERT_EQ(nodes()[4].command({"CLUSTER", "FAILOVER", "TAKEOVER"}), "OK");
  ASSERT_TRUE(nodes().await_promotion(4));
  EXPECT_TRUE(eventually([&] { return held.renew().has_value(); }));
  EXPECT_TRUE(held.held());
  EXPECT_TRUE(eventually([&] { return held.release().has_value(); }));
  EXPECT_TRUE(next.get()) << "a connection that only listens does not notice";
  nodes()[1].resume();
}

// Scenario 22: what the replica had not got yet is lost with the master. First a lock by hand.
TEST_F(ClusterFailover, TokenCatchesTheDoubleGrantOfALaggingReplica) {
  const auto name = name_on(nodes(), 2);
  const auto by_hand = "{" + name + "}by hand";
  client holder{nodes().url(), options()};
  client other{nodes().url(), options()};
  { const lease warm = holder.mutex(name).acquire(); }
  replicate(nodes()[2]);
  // From here on the replica gets nothing.
  (void)nodes()[2].command({"ACL", "SETUSER", "default", "-psync", "-sync"});
  (void)nodes()[2].command({"CLIENT", "KILL", "TYPE", "replica"});
  naive_lock first{nodes()[2].where(), by_hand};
  ASSERT_TRUE(first.lock(60s));
  lease held = holder.mutex(name).acquire();
  watched_token lost{held.lost()};
  nodes()[2].kill9();
  ASSERT_TRUE(eventually([&] {
    return nodes()[5].command({"CLUSTER", "FAILOVER", "TAKEOVER"}) == "OK";
  }));
  ASSERT_TRUE(nodes().await_promotion(5));

  naive_lock second{nodes()[5].where(), by_hand};
  EXPECT_TRUE(second.lock(60s)) << "two hold it, and neither knows";

  auto got = other.mutex(name).try_acquire(patience);
  ASSERT_TRUE(got) << "the lock is lost, as any lock on a master that has not replicated it";
  fence::gate resource;
  EXPECT_TRUE(resource.accept(got->token()));
  EXPECT_FALSE(resource.accept(held.token())) << "the one that lost it is refused";
  // It is told at once, not at its next renewal, a third of its TTL away.
  EXPECT_TRUE(lost.wait(5s));
  EXPECT_TRUE(held.why_lost() == loss::taken || held.why_lost() == loss::deleted)
      << "as its renewal found it, before or after the other's grant";
}

// Last: nobody answers any more.
TEST_F(ClusterFailover, NobodyAnswersAndEveryCallEndsInTime) {
  client_options quick{.lock = {.ttl = 20s},
                       .operation_timeout = 300ms,
                       .unreachable_limit = 500ms,
                       .release_budget = 300ms};
  client c{nodes().url(), quick};
  const auto name = name_on(nodes(), 3);
  lease held = c.mutex(name).acquire();
  for (std::size_t i = 0; i < nodes().size(); ++i) {
    if (nodes()[i].pid() > 0) nodes()[i].pause();
  }
  const auto in_time = [](const auto& call) {
    const auto began = std::chrono::steady_clock::now();
    call();
    const auto took = std::chrono::steady_clock::now() - began;
    EXPECT_LT(took, 5s);  // many times what was asked for, on a busy machine
  };
  in_time([&] { EXPECT_THROW((void)c.mutex("other").try_acquire(1s), error); });
  in_time([&] { EXPECT_THROW((void)c.status(name), error); });
  in_time([&] { EXPECT_THROW((void)c.list("*"), error); });
  in_time([&] { EXPECT_FALSE(held.renew()); });
  in_time([&] { EXPECT_FALSE(held.release()); });
  in_time([&] {
    client fresh{nodes().url(), quick};
    EXPECT_THROW((void)fresh.mutex("other").try_acquire(1s), error);
  });
  for (std::size_t i = 0; i < nodes().size(); ++i) {
    if (nodes()[i].pid() > 0) nodes()[i].resume();
  }
}

}  // namespace holdfast::test
