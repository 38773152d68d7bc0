// A server in cluster mode was accepted and lost every lease of a renewal that spans slots; so was
// a server that votes in a quorum, whose locks and ours do not know each other. And a key of
// another type was shown as a free lock.
#include "support/proxied_redis.hpp"
#include "support/redlock_nodes.hpp"

using namespace std::chrono_literals;

namespace holdfast::test {

TEST(UnsuitableServer, InClusterModeIsRefusedByName) {
  const redis_server server{{.config = {"cluster-enabled yes"}}};
  client c{server.url()};
  std::string what;
  EXPECT_EQ(thrown_by([&] { (void)c.mutex("orders").try_acquire(); }, &what), errc::incompatible);
  EXPECT_NE(what.find("cluster"), std::string::npos) << what;
}

TEST(UnsuitableServer, ThatVotesInAQuorumIsRefused) {
  const redis_server server;
  static_cast<void>(server.command({"HSET", "holdfast:{redlock}:node", "config", "any"}));
  client c{server.url()};
  std::string what;
  EXPECT_EQ(thrown_by([&] { (void)c.mutex("orders").try_acquire(); }, &what), errc::incompatible);
  EXPECT_NE(what.find("redlock://"), std::string::npos) << what;
}

// A client of a quorum that took the server for a node has begun its wait there, and gone.
TEST(UnsuitableServer, ThatOnlyWaitedToVoteIsNotRefused) {
  const redis_server server;
  static_cast<void>(server.command({"HSET", "holdfast:{redlock}:node", "wait", "any"}));
  client c{server.url()};
  EXPECT_TRUE(c.mutex("orders").try_acquire());
}

namespace {

// A client that connects refuses the last of three nodes for this reason. On a busy machine a node
// may have been too slow before, which is another reason.
void expect_refused_for(const std::string& because, const redlock_nodes& set) {
  client c{set.url()};
  EXPECT_TRUE(c.mutex("orders").try_acquire(patience)) << "the others are a majority";
  std::string reason;
  EXPECT_TRUE(eventually([&] {
    reason = c.status("orders").nodes.at(2).reason;
    return reason.find(because) != std::string::npos;
  })) << reason;
}

}  // namespace

TEST(UnsuitableServer, ReplicaIsNoNodeOfAQuorum) {
  redlock_nodes set{3};
  const redis_server master{{.tcp = true}};
  (void)set[2].command({"REPLICAOF", "127.0.0.1", std::to_string(master.port())});
  expect_refused_for("replica", set);
}

TEST(UnsuitableServer, OneThatMayEvictLocksIsNoNodeOfAQuorum) {
  redlock_nodes set{3};
  (void)set[2].command({"CONFIG", "SET", "maxmemory", "100mb"});
  (void)set[2].command({"CONFIG", "SET", "maxmemory-policy", "volatile-lru"});
  expect_refused_for("noeviction", set);
}

TEST(UnsuitableServer, KeyOfAnotherTypeIsNoFreeLock) {
  const redis_server server;
  static_cast<void>(server.command({"HSET", "orders", "field", "value"}));
  client c{server.url()};
  EXPECT_EQ(thrown_by([&] { (void)c.status("orders"); }), errc::wrong_type);
  EXPECT_TRUE(c.list("*").empty());
}

}  // namespace holdfast::test
