// A store's wall clock that jumps is noticed; delays of a request are not taken for a jump.
#include "core/clock_watch.hpp"

#include <gtest/gtest.h>

using namespace std::chrono_literals;

namespace holdfast::test {

namespace {

using core::clock_watch;
using core::duration;
using core::time_point;

constexpr time_point start{1h};
constexpr duration theirs = 24h * 365 * 50;

}  // namespace

TEST(ClockWatch, ClocksThatRunAlikeAreNoNews) {
  clock_watch watch;
  for (int i = 0; i < 10; ++i) {
    const auto sent = start + i * 10s;
    EXPECT_EQ(watch.look(theirs + i * 10s, sent, sent + 1ms), 0s);
  }
}

TEST(ClockWatch, StepsEitherWayAreToldOnce) {
  for (const duration step : {5s, -5s}) {
    clock_watch watch;
    EXPECT_EQ(watch.look(theirs, start, start), 0s) << "nothing to compare with";
    EXPECT_EQ(watch.look(theirs + 10s + step, start + 10s, start + 10s), step);
    EXPECT_EQ(watch.look(theirs + 20s + step, start + 20s, start + 20s), 0s);
  }
}

TEST(ClockWatch, WhatDelaysExplainIsNoStep) {
  clock_watch watch;
  EXPECT_EQ(watch.look(theirs + 3s, start, start + 4s), 0s);
  EXPECT_EQ(watch.look(theirs + 10s, start + 10s, start + 10s), 0s) << "the first was in doubt";
  EXPECT_EQ(watch.look(theirs + 21s, start + 20s, start + 20s), 0s) << "up to a second";
  EXPECT_NE(watch.look(theirs + 32'100ms, start + 30s, start + 30s), 0s);
}

}  // namespace holdfast::test
