// The guardian's decisions, without a guardian.
#include "cli/guard_plan.hpp"

#include <gtest/gtest.h>

namespace holdfast::cli {
namespace {

using step = guard_plan::step;

guard_plan plan_until(std::int64_t term_at, std::int64_t kill_at) {
  guard_plan plan;
  plan.extend(term_at, kill_at);
  return plan;
}

TEST(GuardPlan, DoesNothingUntilItIsTold) {
  guard_plan plan;
  EXPECT_EQ(plan.due(guard_plan::never - 1), step::wait);
  EXPECT_EQ(plan.next(), guard_plan::never);
}

TEST(GuardPlan, TerminatesAtTheDeadlineThenKills) {
  guard_plan plan = plan_until(100, 150);
  EXPECT_EQ(plan.due(99), step::wait);
  EXPECT_EQ(plan.next(), 100);
  EXPECT_EQ(plan.due(100), step::terminate);
  EXPECT_EQ(plan.due(149), step::wait);
  EXPECT_EQ(plan.next(), 150);
  EXPECT_EQ(plan.due(150), step::kill);
  EXPECT_EQ(plan.due(200), step::wait);
  EXPECT_EQ(plan.next(), guard_plan::never);
}

TEST(GuardPlan, ARenewalMovesBothMoments) {
  guard_plan plan = plan_until(100, 150);
  plan.extend(200, 250);
  EXPECT_EQ(plan.due(199), step::wait);
  EXPECT_EQ(plan.due(200), step::terminate);
  EXPECT_EQ(plan.kill_at(), 250);
}

TEST(GuardPlan, ARenewalAfterTheDeadlineComesTooLate) {
  guard_plan plan = plan_until(100, 150);
  EXPECT_EQ(plan.due(100), step::terminate);
  plan.extend(1000, 1050);
  EXPECT_EQ(plan.due(150), step::kill);
}

TEST(GuardPlan, AfterALongPauseBothStepsAreDueAtOnce) {
  guard_plan plan = plan_until(100, 150);
  EXPECT_EQ(plan.due(9999), step::terminate);
  EXPECT_EQ(plan.due(9999), step::kill);
}

TEST(GuardPlan, LossTerminatesAtOnceAndKillsAfterTheGrace) {
  guard_plan plan = plan_until(100, 150);
  plan.lose(10, 30);
  EXPECT_EQ(plan.due(10), step::terminate);
  EXPECT_EQ(plan.due(29), step::wait);
  EXPECT_EQ(plan.due(30), step::kill);
}

TEST(GuardPlan, NoGraceReachesBeyondTheLease) {
  guard_plan plan = plan_until(100, 150);
  plan.abandon(140, 1000);
  EXPECT_EQ(plan.due(140), step::terminate);
  EXPECT_EQ(plan.due(150), step::kill);
}

TEST(GuardPlan, ASecondLossChangesNothing) {
  guard_plan plan = plan_until(100, 150);
  plan.lose(10, 30);
  EXPECT_EQ(plan.due(10), step::terminate);
  plan.abandon(20, 1000);
  EXPECT_EQ(plan.due(30), step::kill);
}

TEST(GuardPlan, AFinishedCommandIsLeftAlone) {
  guard_plan plan = plan_until(100, 150);
  plan.finish();
  plan.abandon(50, 0);
  EXPECT_EQ(plan.due(9999), step::wait);
  EXPECT_FALSE(plan.terminating());
}

TEST(GuardPlan, ACommandThatEndsWhileTerminatingStillHasItsGroupKilled) {
  guard_plan plan = plan_until(100, 150);
  EXPECT_EQ(plan.due(100), step::terminate);
  plan.finish();
  EXPECT_EQ(plan.due(150), step::kill);
}

}  // namespace
}  // namespace holdfast::cli
