// Durations of any type become those of settings and waits.
#include <limits>

#include <gtest/gtest.h>

#include <holdfast/client.hpp>
#include <holdfast/duration.hpp>

using namespace std::chrono_literals;

namespace holdfast::test {

TEST(AnyDuration, IsRoundedUpToItsUnit) {
  EXPECT_EQ(any_milliseconds{1500ms}, 1500ms);
  EXPECT_EQ(any_milliseconds{1.5s}, 1500ms);
  EXPECT_EQ(any_milliseconds{250us}, 1ms);
  EXPECT_EQ(any_milliseconds{2h}, 2h);
  EXPECT_EQ(any_milliseconds{-0.5s}, -500ms);
  EXPECT_EQ(any_nanoseconds{std::chrono::duration<float>{0.25F}}, 250ms);
  EXPECT_EQ(any_milliseconds{}, 0ms);
}

TEST(AnyDuration, WhatIsTooLongIsTheLongest) {
  constexpr auto infinite = std::numeric_limits<double>::infinity();
  EXPECT_EQ(any_nanoseconds{std::chrono::hours::max()}, std::chrono::nanoseconds::max());
  EXPECT_EQ(any_nanoseconds{std::chrono::hours::min()}, std::chrono::nanoseconds::min());
  EXPECT_EQ(any_nanoseconds{forever}, forever);
  EXPECT_EQ(any_milliseconds{as_long_as_waiting}, as_long_as_waiting);
  EXPECT_EQ(any_milliseconds{std::chrono::duration<double>{infinite}},
            std::chrono::milliseconds::max());
  EXPECT_EQ(any_milliseconds{std::chrono::duration<double>{infinite - infinite}}, 0ms);
}

TEST(AnyDuration, SettingsAndWaitsTakeThem) {
  const lock_options terms{.ttl = 2.5s, .margin = 300'000us, .max_hold = std::chrono::days{1}};
  EXPECT_EQ(terms.ttl, 2500ms);
  EXPECT_EQ(terms.margin, 300ms);
  EXPECT_EQ(terms.max_hold, 24h);
  client c{"memory:any-duration", {.lock = {.ttl = 0.5min}, .wait_limit = 0.25s}};
  const auto held = c.mutex("a").try_acquire(0.5s);
  ASSERT_TRUE(held);
  EXPECT_FALSE(c.mutex("a").try_acquire(std::chrono::duration<float, std::milli>{1.5F}));
  EXPECT_TRUE(c.mutex("b").try_lock_for(std::chrono::hours::max()));
  c.mutex("b").unlock();
}

}  // namespace holdfast::test
