// How long a lock is left free for foreign clients: within bounds, and never in step.
#include "core/foreign.hpp"

#include <set>

#include <gtest/gtest.h>

namespace holdfast::test {

TEST(RoomForForeign, LiesBetweenItsBoundsAndVaries) {
  std::set<core::duration> seen;
  for (std::uint64_t i = 0; i < 1000; ++i) {
    const auto room = core::room_for_foreign(i * 0x9e3779b97f4a7c15ULL);
    EXPECT_GE(room, core::room_min);
    EXPECT_LE(room, core::room_max);
    seen.insert(room);
  }
  EXPECT_GT(seen.size(), 900U);
  EXPECT_EQ(core::room_for_foreign(0), core::room_min);
}

}  // namespace holdfast::test
