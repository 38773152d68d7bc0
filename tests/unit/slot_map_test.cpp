#include "stores/redis/cluster/slot_map.hpp"

#include <gtest/gtest.h>

namespace holdfast::stores::redis {
namespace {

reply read(std::string_view bytes) {
  reply_reader reader;
  reader.feed(bytes);
  return reader.next();
}

TEST(SlotMap, IsReadFromRanges) {
  const auto map =
      read_slot_map(*read("*2\r\n"
                          "*4\r\n:0\r\n:8191\r\n*3\r\n$8\r\n10.0.0.1\r\n:7000\r\n$1\r\na\r\n"
                          "*3\r\n$8\r\n10.0.0.3\r\n:7003\r\n$1\r\nc\r\n"
                          "*3\r\n:8192\r\n:16383\r\n*2\r\n$3\r\n::1\r\n:7001\r\n"),
                    "seed");
  ASSERT_TRUE(map);
  ASSERT_EQ(map->masters().size(), 2U) << "replicas are none";
  EXPECT_EQ(map->owner(0)->text(), "10.0.0.1:7000");
  EXPECT_EQ(map->owner(8191)->text(), "10.0.0.1:7000");
  EXPECT_EQ(map->owner(8192)->text(), "[::1]:7001");
}

TEST(SlotMap, NodeThatDoesNotKnowItsNameIsTheOneThatWasAsked) {
  for (const auto* const name : {"$0\r\n\r\n", "$-1\r\n"}) {
    const auto map = read_slot_map(
        *read("*1\r\n*3\r\n:5\r\n:5\r\n*2\r\n" + std::string{name} + ":7000\r\n"), "seed");
    ASSERT_TRUE(map);
    EXPECT_EQ(map->owner(5)->text(), "seed:7000");
    EXPECT_EQ(map->owner(6), nullptr) << "nobody has it";
  }
}

TEST(SlotMap, NonsenseIsRefused) {
  for (const auto* const said :
       {"+OK\r\n", "*1\r\n:1\r\n", "*1\r\n*3\r\n:0\r\n:16384\r\n*2\r\n$1\r\na\r\n:1\r\n",
        "*1\r\n*3\r\n:-1\r\n:5\r\n*2\r\n$1\r\na\r\n:1\r\n",
        "*1\r\n*3\r\n:0\r\n:5\r\n*2\r\n$1\r\na\r\n:0\r\n",
        "*1\r\n*3\r\n:0\r\n:5\r\n*1\r\n$1\r\na\r\n"}) {
    const auto map = read_slot_map(*read(said), "seed");
    ASSERT_FALSE(map) << said;
    EXPECT_EQ(map.error().code, errc::incompatible);
  }
}

TEST(SlotMap, OneSlotIsAssignedAnew) {
  slot_map map;
  EXPECT_TRUE(map.assign(7, {"a", 1}));
  EXPECT_TRUE(map.assign(7, {"b", 2}));
  EXPECT_TRUE(map.assign(8, {"b", 2}));
  EXPECT_EQ(map.owner(7)->host, "b");
  EXPECT_EQ(map.masters().size(), 2U);
}

TEST(SlotMap, HasNoMoreMastersThanAClusterMay) {
  slot_map map;
  for (unsigned i = 0; i < slot_map::masters_max; ++i)
    ASSERT_TRUE(map.assign(i, {"a", static_cast<std::uint16_t>(i + 1)}));
  EXPECT_FALSE(map.assign(0, {"one more", 1}));
  EXPECT_EQ(map.owner(0)->host, "a");
}

TEST(ClusterHealth, IsReadFromInfo) {
  const auto health = read_health(
      "cluster_state:ok\r\ncluster_my_epoch:9\r\n"
      "cluster_current_epoch:12\r\n");
  EXPECT_TRUE(health.ok);
  EXPECT_EQ(health.epoch, 12U);
  EXPECT_FALSE(read_health("cluster_enabled:1\r\ncluster_state:fail\r\n").ok);
  EXPECT_TRUE(read_health("").ok) << "it did not say";
}

}  // namespace
}  // namespace holdfast::stores::redis
