#include "core/settled_ids.hpp"

#include <gtest/gtest.h>

namespace holdfast::core {

namespace {

TEST(SettledIds, RemembersTheLatestAndNoMore) {
  settled_ids ids;
  const auto first = owner_id::from_bits(1, 0);
  EXPECT_FALSE(ids.contains(first));
  ids.add(first);
  EXPECT_TRUE(ids.contains(first));
  for (std::uint64_t i = 1; i < settled_ids::remembered_max; ++i)
    ids.add(owner_id::from_bits(2, i));
  EXPECT_TRUE(ids.contains(first));
  ids.add(owner_id::from_bits(3, 0));
  EXPECT_FALSE(ids.contains(first));
  EXPECT_TRUE(ids.contains(owner_id::from_bits(3, 0)));
}

}  // namespace

}  // namespace holdfast::core
