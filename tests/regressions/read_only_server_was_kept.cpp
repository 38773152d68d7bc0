// Behind one address the master became a replica, and another server the master. Connections to the
// old master stayed open and answered READONLY: the client kept them until its leases were lost.
#include <future>

#include "stores/redis/layout.hpp"
#include "support/proxied_redis.hpp"

using namespace std::chrono_literals;

namespace holdfast::test {

class Failover : public testing::Test {
 protected:
  void SetUp() override {
    load_scripts(one);
    load_scripts(two);
    ASSERT_EQ(two.command({"REPLICAOF", "127.0.0.1", std::to_string(one.port())}), "OK");
    ASSERT_TRUE(eventually([&] { return two.info("replication", "master_link_status") == "up"; }));
  }
  // Nothing is lost: the new master has all that the old one had.
  void switch_roles() {
    ASSERT_TRUE(eventually([&] {
      return one.info("replication", "master_repl_offset") ==
             two.info("replication", "master_repl_offset");
    }));
    ASSERT_EQ(two.command({"REPLICAOF", "NO", "ONE"}), "OK");
    ASSERT_EQ(one.command({"REPLICAOF", "127.0.0.1", std::to_string(two.port())}), "OK");
    address.lead_to(two.where());
  }

  redis_server one{{.tcp = true}};
  redis_server two{{.tcp = true}};
  fault_proxy address{one.where()};
};

TEST_F(Failover, LeaseIsRenewedAtTheNewMaster) {
  client c{address.url(), {.lock = {.ttl = 6s}}};
  lease held = c.mutex("orders").acquire();
  // So that the connection for renewals is one to the old master.
  ASSERT_TRUE(eventually([&] { return c.counters().renewals > 0; }));
  switch_roles();
  const auto before = c.counters().renewals;
  EXPECT_TRUE(eventually([&] { return c.counters().renewals >= before + 2 || !held.held(); }));
  EXPECT_TRUE(held.held());
  EXPECT_EQ(c.counters().losses, 0U);
  EXPECT_TRUE(held.release());
  EXPECT_EQ(two.command({"EXISTS", "orders"}), "0");
}

TEST_F(Failover, AskAndReleaseGoToTheNewMaster) {
  client c{address.url()};
  std::optional<lease> held = c.mutex("orders").acquire();
  switch_roles();
  lease other = c.mutex("others").acquire();
  EXPECT_EQ(two.command({"EXISTS", "others"}), "1");
  held.reset();
  EXPECT_TRUE(eventually([&] { return two.command({"EXISTS", "orders"}) == "0"; }));
}

// Its inbox is at the old master, and hears nothing there of what the new one grants.
TEST_F(Failover, WaiterIsServedByTheNewMaster) {
  client c{address.url()};
  client waits{address.url(), {.lock = {.ttl = 4s}}};
  lease held = c.mutex("orders").acquire();
  auto got =
      std::async(std::launch::async, [&] { return waits.mutex("orders").try_acquire(patience); });
  const stores::redis::lock_keys keys{"orders"};
  ASSERT_TRUE(eventually([&] { return one.command({"LLEN", keys.queue}) == "1"; }));
  switch_roles();
  ASSERT_EQ(one.command({"REPLICAOF", "127.0.0.1", "1"}), "OK") << "hears nothing any more";
  ASSERT_TRUE(eventually([&] {
    return two.command({"PUBSUB", "CHANNELS", "holdfast:inbox:*"}).starts_with("holdfast:inbox:");
  }));
  EXPECT_TRUE(held.release());
  EXPECT_TRUE(got.get());
}

}  // namespace holdfast::test
