// Locks on a Redis cluster whose nodes all live: where they are, and slots that move under them.
#include <atomic>
#include <future>
#include <set>
#include <thread>

#include <gtest/gtest.h>

#include <holdfast/holdfast.hpp>
#include <holdfast/redisson.hpp>

#include "stores/redis/layout.hpp"
#include "support/redis_cluster.hpp"
#include "support/watch.hpp"

using namespace std::chrono_literals;

namespace holdfast::test {

// One cluster for all tests of this process, and slots of each test's own.
class Cluster : public testing::Test {
 protected:
  static redis_cluster& nodes() {
    static redis_cluster all;
    return all;
  }
  [[nodiscard]] static client connect(client_options options = {.lock = {.ttl = 60s}}) {
    return client{nodes().url(), std::move(options)};
  }
  // A name whose slot is on this node, and no other test's.
  [[nodiscard]] static std::string name_on(std::size_t node) {
    static int last = 0;
    for (;;) {
      const auto name = "orders-" + std::to_string(++last);
      if (nodes().master_of(name) == node) return name;
    }
  }
  [[nodiscard]] static std::size_t waiting(const std::string& name) {
    return std::stoul(nodes().on_master_of(name, {"LLEN", stores::redis::lock_keys{name}.queue}));
  }
  // "NUMSUB" or "SHARDNUMSUB": whether one client listens to it at this node.
  [[nodiscard]] static bool is_heard(std::size_t node, const std::string& how,
                                     const std::string& channel) {
    raw_redis connection{nodes()[node].where()};
    const auto said = connection.command({"PUBSUB", how, channel});
    return said.items.size() == 2 && said.items[1].integer == 1;
  }
  [[nodiscard]] static std::future<std::optional<lease>> wait_for(client& by,
                                                                  const std::string& name) {
    return std::async(std::launch::async,
                      [&by, name] { return by.mutex(name).try_acquire(patience); });
  }
};

TEST_F(Cluster, LocksAreOnTheNodesOfTheirSlotsAndAreListedFromAll) {
  client c = connect();
  std::vector<lease> held;
  std::vector<std::string> names;
  for (std::size_t node = 0; node < 3; ++node) {
    names.push_back(name_on(node));
    held.push_back(c.mutex(names.back()).acquire());
    EXPECT_EQ(nodes()[node].command({"EXISTS", names.back()}), "1");
  }
  std::set<std::string> listed;
  for (const auto& one : c.list("orders-*"))
    listed.insert(one.name);
  for (const auto& name : names)
    EXPECT_TRUE(listed.contains(name)) << name;
}

// A request with keys of two slots is refused as a whole: then none of the leases is renewed.
TEST_F(Cluster, LeasesOfManySlotsAreRenewed) {
  client c = connect({.lock = {.ttl = 2'100ms}});
  std::vector<lease> held;
  for (int i = 0; i < 60; ++i)
    held.push_back(c.mutex("renewed-" + std::to_string(i)).acquire());
  const auto until = std::chrono::steady_clock::now() + 2'500ms;  // past every first TTL
  watched_token first{held.front().lost()};
  EXPECT_FALSE(first.wait(until - std::chrono::steady_clock::now()));
  for (const auto& one : held)
    EXPECT_TRUE(one.held());
}

TEST_F(Cluster, MovedSlotIsFollowed) {
  const auto name = name_on(0);
  client c = connect();
  lease held = c.mutex(name).acquire();
  nodes().move(redis_cluster::slot_of(name), 1);
  EXPECT_TRUE(held.renew());
  EXPECT_TRUE(held.release());
  EXPECT_TRUE(c.mutex(name).try_acquire());
  EXPECT_EQ(nodes().master_of(name), 1U);
}

// While keys are on two nodes a script with several of them can run on neither.
TEST_F(Cluster, HalfMovedSlotIsWaitedFor) {
  const auto name = name_on(0);
  const auto slot = redis_cluster::slot_of(name);
  client c = connect();
  lease held = c.mutex(name).acquire();
  nodes().begin_move(slot, 0, 1);
  EXPECT_TRUE(held.renew()) << "its key is still there";
  nodes().move_keys(slot, 0, 1);
  EXPECT_TRUE(held.renew()) << "its key is at the other node, which has to be told ASKING";
  auto waiter = wait_for(c, name);
  auto released = std::async(std::launch::async, [&] { return held.release().has_value(); });
  client hasty = connect({.lock = {.ttl = 60s}, .operation_timeout = 200ms});
  const auto asked = std::chrono::steady_clock::now();
  EXPECT_THROW((void)hasty.mutex(name).try_acquire(), error);
  EXPECT_LT(std::chrono::steady_clock::now() - asked, patience);
  nodes().end_move(slot, 1);
  EXPECT_TRUE(released.get());
  EXPECT_TRUE(waiter.get());
}

// The queue moves with its slot. Its waiters listen at the node that had it, and what is published
// at the new one reaches them, but does not count.
TEST_F(Cluster, WaitersKeepTheirPlacesWhenTheSlotMoves) {
  const auto name = name_on(0);
  client holder = connect();
  client second = connect();
  client third = connect();
  lease held = holder.mutex(name).acquire();
  auto next = wait_for(second, name);
  ASSERT_TRUE(eventually([&] { return waiting(name) == 1; }));
  auto last = wait_for(third, name);
  ASSERT_TRUE(eventually([&] { return waiting(name) == 2; }));
  nodes().move(redis_cluster::slot_of(name), 2);
  // Both have found out, if only by looking now and then: their entries name inboxes there.
  const auto listens = [&] {
    for (const auto* const at : {"0", "1"}) {
      const auto entry =
          nodes().on_master_of(name, {"LINDEX", stores::redis::lock_keys{name}.queue, at});
      const auto parsed = stores::redis::queue_entry::parse(entry);
      if (!parsed) return false;
      if (!is_heard(2, "NUMSUB", std::string{parsed->inbox})) return false;
    }
    return true;
  };
  EXPECT_TRUE(eventually(listens));
  const auto first_token = held.token();
  EXPECT_TRUE(held.release());
  auto got = next.get();
  ASSERT_TRUE(got);
  EXPECT_GT(got->token(), first_token);
  EXPECT_EQ(last.wait_for(0s), std::future_status::timeout);
  EXPECT_TRUE(got->release());
  EXPECT_TRUE(last.get());
}

// Released before its waiter could find out: nobody listens where the script runs. The waiter must
// not take for a grant what is taken back, and must not sleep on.
TEST_F(Cluster, WaiterThatListensElsewhereIsToldToAsk) {
  const auto name = name_on(0);
  const stores::redis::lock_keys keys{name};
  client holder = connect();
  // Its waiter says "still here" every five seconds, and looks at the map every other one.
  client waiter = connect({.lock = {.ttl = 60s, .renew = false}});
  lease held = holder.mutex(name).acquire();
  auto next = wait_for(waiter, name);
  ASSERT_TRUE(eventually([&] { return waiting(name) == 1; }));
  nodes().move(redis_cluster::slot_of(name), 1);
  EXPECT_TRUE(held.release());
  auto got = next.get();
  ASSERT_TRUE(got);
  EXPECT_TRUE(got->held());
  EXPECT_TRUE(nodes()[1].command({"GET", name}).find(";token=" + to_string(got->token())) !=
              std::string::npos)
      << "it holds what the store says it holds";
  EXPECT_TRUE(got->renew());
}

TEST_F(Cluster, LockExcludesAndIsHandedOnWhileItsSlotMoves) {
  const auto name = name_on(0);
  const auto slot = redis_cluster::slot_of(name);
  std::atomic<bool> stop{false};
  std::atomic<int> inside{0};
  std::atomic<int> crowded{0};
  std::atomic<std::uint64_t> hands{0};
  fence::gate gate;
  std::atomic<int> refused{0};
  std::vector<std::thread> workers;
  for (int i = 0; i < 4; ++i) {
    workers.emplace_back([&] {
      client c = connect();
      while (!stop) {
        auto got = c.mutex(name).try_acquire(patience);
        if (!got) break;
        if (++inside > 1) ++crowded;
        if (!gate.accept(got->token())) ++refused;
        --inside;
        ++hands;
      }
    });
  }
  for (int move = 0; move < 8; ++move) {
    const auto before = hands.load();
    EXPECT_TRUE(eventually([&] { return hands > before + 20; })) << "after move " << move;
    nodes().move(slot, static_cast<std::size_t>(move + 1) % 3);
  }
  stop = true;
  for (auto& one : workers)
    one.join();
  EXPECT_EQ(crowded, 0);
  EXPECT_EQ(refused, 0);
}

TEST_F(Cluster, WaitersOfASemaphoreFollowTheirSlot) {
  const auto name = name_on(1);
  client one = connect();
  client other = connect();
  auto held = one.semaphore(name, 2).acquire(std::uint32_t{2});
  auto next = std::async(std::launch::async,
                         [&] { return other.semaphore(name, 2).try_acquire(1U, patience); });
  ASSERT_TRUE(eventually([&] { return waiting(name) == 1; }));
  nodes().move(redis_cluster::slot_of(name), 0);
  EXPECT_TRUE(held.release());
  EXPECT_TRUE(next.get());
}

TEST_F(Cluster, LatchOpensForWaitersWhenItsSlotHasMoved) {
  const auto name = name_on(1);
  client one = connect();
  client other = connect();
  auto opened = std::async(std::launch::async, [&] { return other.latch(name, 1).wait(patience); });
  const auto channel = stores::redis::latch_channel(name);
  ASSERT_TRUE(eventually([&] { return is_heard(1, "NUMSUB", channel); }));
  nodes().move(redis_cluster::slot_of(name), 2);
  one.latch(name, 1).count_down();
  EXPECT_TRUE(opened.get());
}

// Redisson's waiters listen by SSUBSCRIBE where the servers know it.
TEST_F(Cluster, RedissonHearsOfAReleaseOnItsShardedChannel) {
  const auto name = name_on(2);
  client c = connect();
  auto held = redisson::rlock{c, name}.try_acquire(patience);
  ASSERT_TRUE(held);
  raw_redis listener{nodes()[2].where()};
  const auto channel = "redisson_lock__channel:{" + name + "}";
  (void)listener.command({"SSUBSCRIBE", channel});
  EXPECT_TRUE(held->release());
  const auto heard = listener.receive();
  ASSERT_EQ(heard.items.size(), 3U);
  EXPECT_EQ(heard.items[0].text, "smessage");
  EXPECT_EQ(heard.items[2].text, "0");
}

TEST_F(Cluster, WaiterHearsRedissonsReleaseOnItsShardedChannel) {
  const auto name = name_on(2);
  const auto channel = "redisson_lock__channel:{" + name + "}";
  client c = connect();
  // As Java holds it, and gives it back.
  (void)nodes()[2].command({"HSET", name, "ffffffff-0000-0000-0000-000000000000:1", "1"});
  (void)nodes()[2].command({"PEXPIRE", name, "60000"});
  redisson::rlock lock{c, name};
  auto next = std::async(std::launch::async, [&] { return lock.try_acquire(patience); });
  ASSERT_TRUE(eventually([&] { return is_heard(2, "SHARDNUMSUB", channel); }));
  (void)nodes()[2].command({"DEL", name});
  EXPECT_EQ(nodes()[2].command({"SPUBLISH", channel, "0"}), "1");
  EXPECT_TRUE(next.get());
}

TEST_F(Cluster, UrlOfAnotherKindOfServerIsRefused) {
  const auto said = [](const std::string& url) -> std::string {
    try {
      client c{url};
      (void)c.mutex("orders").try_acquire();
      return "nothing";
    } catch (const error& e) {
      EXPECT_EQ(e.code(), errc::incompatible) << e.what();
      return e.what();
    }
  };
  const auto where = "127.0.0.1:" + std::to_string(nodes()[0].port());
  EXPECT_NE(said("redis://" + where).find("redis+cluster://"), std::string::npos);
  const redis_server alone{{.tcp = true}};
  EXPECT_NE(said("redis+cluster://127.0.0.1:" + std::to_string(alone.port())).find("redis://"),
            std::string::npos);
}

// One address that answers is enough.
TEST_F(Cluster, AddressesInTheUrlThatAreGoneArePassedOver) {
  const auto gone = "127.0.0.1:" + std::to_string(free_port());
  client c{"redis+cluster://" + gone + ",127.0.0.1:" + std::to_string(nodes()[1].port())};
  for (std::size_t node = 0; node < 3; ++node)
    EXPECT_TRUE(c.mutex(name_on(node)).try_acquire());
}

}  // namespace holdfast::test
