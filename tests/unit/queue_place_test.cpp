#include "core/queue_place.hpp"

#include <gtest/gtest.h>

namespace holdfast::core {

namespace {

using std::chrono::milliseconds;

time_point at(int ms) { return time_point{milliseconds{ms}}; }

TEST(QueuePlace, CountsValidityFromTheRequestThatWasAnsweredQueued) {
  queue_place place;
  place.queued(at(100), 7);
  const auto got = place.accept(fencing_token{8}, milliseconds{1000}, 3);
  ASSERT_TRUE(got);
  EXPECT_EQ(got->counted_from, at(100));
  EXPECT_EQ(got->token, fencing_token{8});
  EXPECT_EQ(got->ttl, milliseconds{1000});
  EXPECT_EQ(got->block, 3U);
}

TEST(QueuePlace, IgnoresAGrantFromBeforeTheLatestAnswer) {
  queue_place place;
  place.queued(at(100), 7);
  place.queued(at(200), 9);
  EXPECT_FALSE(place.accept(fencing_token{8}, milliseconds{1000}, 1));
  EXPECT_FALSE(place.accept(fencing_token{9}, milliseconds{1000}, 1));
  const auto got = place.accept(fencing_token{10}, milliseconds{1000}, 1);
  ASSERT_TRUE(got);
  EXPECT_EQ(got->counted_from, at(200));
}

// The message overtook the answer, or the answer was lost: it is ours, but from when is not known.
TEST(QueuePlace, BeforeTheFirstAnswerAGrantIsGoodForNoTime) {
  const auto got = queue_place{}.accept(fencing_token{1}, milliseconds{1000}, 1);
  ASSERT_TRUE(got);
  EXPECT_EQ(got->counted_from, time_point{});
}

TEST(SurelyWithdrawn, NeedsEveryAskAnsweredOrTheOnlyOneCaught) {
  EXPECT_TRUE(surely_withdrawn(3, 0, false));
  EXPECT_TRUE(surely_withdrawn(1, 1, true));
  EXPECT_FALSE(surely_withdrawn(1, 1, false));
  EXPECT_FALSE(surely_withdrawn(2, 1, true));
}

}  // namespace

}  // namespace holdfast::core
