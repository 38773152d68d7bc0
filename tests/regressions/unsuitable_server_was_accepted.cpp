// A server in cluster mode was accepted and lost every lease of a renewal that spans slots; so was
// a server that votes in a quorum, whose locks and ours do not know each other. And a key of
// another type was shown as a free lock.
#include "support/proxied_redis.hpp"

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

TEST(UnsuitableServer, KeyOfAnotherTypeIsNoFreeLock) {
  const redis_server server;
  static_cast<void>(server.command({"HSET", "orders", "field", "value"}));
  client c{server.url()};
  EXPECT_EQ(thrown_by([&] { (void)c.status("orders"); }), errc::wrong_type);
  EXPECT_TRUE(c.list("*").empty());
}

}  // namespace holdfast::test
