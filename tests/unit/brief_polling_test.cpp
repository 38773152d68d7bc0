// When it is worth polling before sleeping, and when not.
#include "core/brief_polling.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace holdfast::test {

using core::brief_polling;

namespace {

// Waits, of which those that are polled all end so; how many were polled.
int polled_of(brief_polling& polling, int waits, bool caught) {
  int polled = 0;
  for (int i = 0; i < waits; ++i) {
    if (!polling.worth_it()) continue;
    ++polled;
    polling.on_polled(caught);
  }
  return polled;
}

}  // namespace

TEST(BriefPolling, GoesOnWhileItSucceeds) {
  brief_polling polling;
  EXPECT_EQ(polled_of(polling, 10'000, true), 10'000);
  EXPECT_TRUE(polling.pays());
}

TEST(BriefPolling, StopsSoonIfItNeverSucceeds) {
  brief_polling polling;
  EXPECT_EQ(polled_of(polling, brief_polling::waits_at_rest - 1, false),
            brief_polling::credit_max / brief_polling::missed_costs);
  EXPECT_FALSE(polling.pays());
}

TEST(BriefPolling, NeverSucceedingCostsAFewPollsInEachRest) {
  brief_polling polling;
  constexpr int waits = 100 * brief_polling::waits_at_rest;
  constexpr int in_each_trial = brief_polling::trial_credit / brief_polling::missed_costs;
  EXPECT_LE(polled_of(polling, waits, false), brief_polling::credit_max + 100 * in_each_trial);
}

TEST(BriefPolling, TrialThatSucceedsBringsItBack) {
  brief_polling polling;
  static_cast<void>(polled_of(polling, brief_polling::waits_at_rest, false));
  EXPECT_GT(polled_of(polling, 3 * brief_polling::waits_at_rest, true),
            brief_polling::waits_at_rest);
  EXPECT_TRUE(polling.pays());
}

TEST(BriefPolling, FirstMissAfterARestDoesNotEndTheTrial) {
  brief_polling polling;
  static_cast<void>(polled_of(polling, brief_polling::waits_at_rest, false));
  while (!polling.worth_it()) {
  }
  polling.on_polled(false);
  EXPECT_TRUE(polling.worth_it());
}

TEST(BriefPolling, LastsWithTwoInThreeAndNotWithOneInTwo) {
  brief_polling two_in_three;
  brief_polling one_in_two;
  for (int i = 0; i < 300; ++i) {
    if (two_in_three.worth_it()) two_in_three.on_polled(i % 3 != 0);
    if (i < 2 * brief_polling::waits_at_rest / 4 && one_in_two.worth_it()) {
      one_in_two.on_polled(i % 2 == 0);
    }
  }
  EXPECT_TRUE(two_in_three.pays());
  EXPECT_FALSE(one_in_two.pays());
}

// However it goes, polling comes up again within one rest.
RC_GTEST_PROP(BriefPolling, NeverRestsForLongerThanItSays, (std::vector<bool> caught)) {
  brief_polling polling;
  for (const bool one : caught) {
    if (polling.worth_it()) polling.on_polled(one);
  }
  int rested = 0;
  while (!polling.worth_it())
    RC_ASSERT(++rested <= brief_polling::waits_at_rest);
}

}  // namespace holdfast::test
