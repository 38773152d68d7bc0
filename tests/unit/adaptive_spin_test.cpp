// When it is worth polling before sleeping, and when not.
#include "core/adaptive_spin.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace holdfast::test {

using core::adaptive_spin;

namespace {

// Waits, of which those that are polled all end so; how many were polled.
int polled_of(adaptive_spin& polling, int waits, bool caught) {
  int polled = 0;
  for (int i = 0; i < waits; ++i) {
    if (!polling.worth_it()) continue;
    ++polled;
    polling.on_polled(caught);
  }
  return polled;
}

}  // namespace

TEST(AdaptiveSpin, GoesOnWhileItSucceeds) {
  adaptive_spin polling;
  EXPECT_EQ(polled_of(polling, 10'000, true), 10'000);
  EXPECT_TRUE(polling.pays());
}

TEST(AdaptiveSpin, StopsSoonIfItNeverSucceeds) {
  adaptive_spin polling;
  EXPECT_EQ(polled_of(polling, adaptive_spin::waits_at_rest - 1, false),
            adaptive_spin::credit_max / adaptive_spin::missed_costs);
  EXPECT_FALSE(polling.pays());
}

TEST(AdaptiveSpin, NeverSucceedingCostsAFewPollsInEachRest) {
  adaptive_spin polling;
  constexpr int waits = 100 * adaptive_spin::waits_at_rest;
  constexpr int in_each_trial = adaptive_spin::trial_credit / adaptive_spin::missed_costs;
  EXPECT_LE(polled_of(polling, waits, false), adaptive_spin::credit_max + 100 * in_each_trial);
}

TEST(AdaptiveSpin, TrialThatSucceedsBringsItBack) {
  adaptive_spin polling;
  static_cast<void>(polled_of(polling, adaptive_spin::waits_at_rest, false));
  EXPECT_GT(polled_of(polling, 3 * adaptive_spin::waits_at_rest, true),
            adaptive_spin::waits_at_rest);
  EXPECT_TRUE(polling.pays());
}

TEST(AdaptiveSpin, FirstMissAfterARestDoesNotEndTheTrial) {
  adaptive_spin polling;
  static_cast<void>(polled_of(polling, adaptive_spin::waits_at_rest, false));
  while (!polling.worth_it()) {
  }
  polling.on_polled(false);
  EXPECT_TRUE(polling.worth_it());
}

TEST(AdaptiveSpin, LastsWithTwoInThreeAndNotWithOneInTwo) {
  adaptive_spin two_in_three;
  adaptive_spin one_in_two;
  for (int i = 0; i < 300; ++i) {
    if (two_in_three.worth_it()) two_in_three.on_polled(i % 3 != 0);
    if (i < 2 * adaptive_spin::waits_at_rest / 4 && one_in_two.worth_it()) {
      one_in_two.on_polled(i % 2 == 0);
    }
  }
  EXPECT_TRUE(two_in_three.pays());
  EXPECT_FALSE(one_in_two.pays());
}

// However it goes, polling comes up again within one rest.
RC_GTEST_PROP(AdaptiveSpin, NeverRestsForLongerThanItSays, (std::vector<bool> caught)) {
  adaptive_spin polling;
  for (const bool one : caught) {
    if (polling.worth_it()) polling.on_polled(one);
  }
  int rested = 0;
  while (!polling.worth_it())
    RC_ASSERT(++rested <= adaptive_spin::waits_at_rest);
}

}  // namespace holdfast::test
