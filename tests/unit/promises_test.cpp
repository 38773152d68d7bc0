// What the stores say of themselves. Saying it asks no server.
#include "stores/redis/promises.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stores/local/local_store.hpp"

namespace holdfast::test {

namespace {

using stores::redis::promises_of_server;
using stores::redis::reach;
using testing::HasSubstr;

}  // namespace

TEST(Promises, OfAServerOnTheNetworkReachOtherHosts) {
  const auto promised = promises_of_server(reach::network);
  EXPECT_EQ(promised.storage, guarantees::storage_kind::single);
  EXPECT_TRUE(promised.shared_between_hosts);
  EXPECT_FALSE(promised.lock_survives_server_crash);
}

TEST(Promises, OfAServerOnASocketStayOnItsHost) {
  const auto promised = promises_of_server(reach::this_host);
  EXPECT_TRUE(promised.shared_between_processes);
  EXPECT_FALSE(promised.shared_between_hosts);
}

TEST(Promises, OfLocalOutliveACrashOfItsServer) {
  auto background = std::make_shared<runtime::background>(1);
  const auto store = stores::local::make_local_store({}, background);
  const auto promised = store->describe();
  EXPECT_TRUE(promised.lock_survives_server_crash);
  EXPECT_FALSE(promised.shared_between_hosts);
  EXPECT_THAT(promised.summary, HasSubstr("of this user on this host"));
  background->stop();
}

}  // namespace holdfast::test
