// Every line of the lease machine's state table, and the arithmetic behind it.
#include "core/lease_machine.hpp"

#include <gtest/gtest.h>

using namespace std::chrono_literals;

namespace holdfast::test {

namespace {

using core::duration;
using core::lease_machine;
using core::lease_rule;
using core::never;
using core::time_point;

constexpr time_point sent{1h};

// Deadline of a grant at `sent`: 30 s − 1 % − 3 s = 26.7 s later. Renewal is due after 10 s.
constexpr lease_rule plain{.ttl = 30s, .validity = {.drift_per_mille = 10, .margin = 3s}};
constexpr time_point plain_deadline = sent + 26'700ms;

lease_machine held_with(const lease_rule& rule, duration ttl = 30s) {
  return lease_machine{rule, {fencing_token{7}, ttl, sent}, sent};
}

lease_rule with_max_hold(duration most) {
  auto rule = plain;
  rule.max_hold = most;
  return rule;
}

lease_rule with_progress(duration within) {
  auto rule = plain;
  rule.progress_within = within;
  return rule;
}

}  // namespace

TEST(LeaseMachine, DeadlineIsTtlLessDriftLessMarginFromWhenTheRequestLeft) {
  EXPECT_EQ(held_with(plain).deadline(), plain_deadline);
  auto exact = plain;
  exact.validity = {.drift_per_mille = 0, .margin = 0s};
  EXPECT_EQ(held_with(exact).deadline(), sent + 30s);
  exact.validity = {.drift_per_mille = 100, .margin = 15s};
  EXPECT_EQ(held_with(exact).deadline(), sent + 12s);
}

TEST(LeaseMachine, ShorterTtlGrantedShortensDeadlineAndRenewal) {
  const auto lease = held_with(plain, 12s);
  EXPECT_EQ(lease.deadline(), sent + 12s - 120ms - 3s);
  // At once, or nearly: a short grant is a claim, and to be made a whole one.
  EXPECT_EQ(lease.next_event(), sent + core::claim_renewal_pause);
}

TEST(LeaseMachine, IsHeldUntilTheMomentOfItsDeadline) {
  auto lease = held_with(plain);
  EXPECT_EQ(lease.tick(plain_deadline - 1ns), loss::none);
  EXPECT_TRUE(lease.is_held());
  EXPECT_EQ(lease.tick(plain_deadline), loss::expired);
  EXPECT_FALSE(lease.is_held());
  EXPECT_EQ(lease.why_lost(), loss::expired);
}

TEST(LeaseMachine, LossIsToldOnceAndByNothingThatFollows) {
  auto lease = held_with(plain);
  ASSERT_EQ(lease.tick(plain_deadline), loss::expired);
  EXPECT_EQ(lease.tick(plain_deadline + 1s), loss::none);
  EXPECT_EQ(lease.renewed(30s, plain_deadline, plain_deadline + 2s), loss::none);
  EXPECT_EQ(lease.refused(loss::taken), loss::none);
  EXPECT_EQ(lease.renewal_failed(plain_deadline + 3s), loss::none);
  EXPECT_FALSE(lease.end());
  EXPECT_FALSE(lease.is_held());
  EXPECT_EQ(lease.why_lost(), loss::expired);
  EXPECT_EQ(lease.next_event(), never);
  EXPECT_FALSE(lease.take_renewal(never, plain_deadline + 4s));
}

TEST(LeaseMachine, NothingIsLostOrRenewedAfterItsEnd) {
  auto lease = held_with(plain);
  ASSERT_TRUE(lease.end());
  EXPECT_FALSE(lease.is_held());
  EXPECT_FALSE(lease.end()) << "it was over already";
  EXPECT_EQ(lease.next_event(), never);
  EXPECT_FALSE(lease.take_renewal(never, sent + 10s));
  EXPECT_EQ(lease.tick(sent + 1h), loss::none);
  EXPECT_EQ(lease.refused(loss::deleted), loss::none);
  EXPECT_EQ(lease.renewal_failed(sent + 1h), loss::none);
  EXPECT_EQ(lease.renewed(30s, sent + 2h, sent + 2h), loss::none);
  EXPECT_FALSE(lease.is_held());
  EXPECT_EQ(lease.why_lost(), loss::none);
}

TEST(LeaseMachine, EndDuringARenewalSilencesItsAnswer) {
  for (const bool refused : {true, false}) {
    auto lease = held_with(plain);
    ASSERT_TRUE(lease.take_renewal(sent + 10s, sent + 10s));
    ASSERT_TRUE(lease.end());
    EXPECT_EQ(refused ? lease.refused(loss::deleted) : lease.renewed(30s, sent + 10s, sent + 1h),
              loss::none);
    EXPECT_EQ(lease.why_lost(), loss::none);
    EXPECT_EQ(lease.next_event(), never);
  }
}

TEST(LeaseMachine, RenewalIsDueAtAThirdOfTheTtlAndTakenOnce) {
  auto lease = held_with(plain);
  EXPECT_EQ(lease.next_event(), sent + 10s);
  EXPECT_FALSE(lease.take_renewal(sent + 10s - 1ns, sent + 10s - 1ns));
  EXPECT_TRUE(lease.take_renewal(sent + 10s, sent + 10s));
  EXPECT_FALSE(lease.take_renewal(sent + 11s, sent + 11s)) << "one is under way";
  EXPECT_EQ(lease.next_event(), plain_deadline) << "nothing is left but to run out";
}

TEST(LeaseMachine, RenewalNearlyDueIsTakenAlong) {
  const auto slack = core::renewal_slack(plain.ttl);
  auto lease = held_with(plain);
  const auto early = sent + 10s - slack;
  EXPECT_FALSE(lease.take_renewal(early - 1ns + slack, early - 1ns));
  EXPECT_TRUE(lease.take_renewal(early + slack, early));
}

TEST(LeaseMachine, SlackIsATwentiethOfTheTtlAndBounded) {
  EXPECT_EQ(core::renewal_slack(30s), 1500ms);
  EXPECT_EQ(core::renewal_slack(20ms), 1ms);
  EXPECT_EQ(core::renewal_slack(24h), core::renewal_slack_max);
}

TEST(LeaseMachine, PatienceWithARenewalLeavesTimeToTryAgain) {
  EXPECT_EQ(core::renewal_patience(sent + 18s, sent, 2s), 2s) << "an operation's timeout at most";
  EXPECT_EQ(core::renewal_patience(sent + 3s, sent, 2s), 1s) << "a third of what is left";
  EXPECT_EQ(core::renewal_patience(sent + 1ms, sent, 2s), 5ms) << "but enough for an answer";
  EXPECT_EQ(core::renewal_patience(sent - 1h, sent, 2s), 5ms);
  EXPECT_EQ(core::renewal_patience(never, sent, 2s), 2s);
}

TEST(LeaseMachine, RenewalMovesTheDeadlineFromWhenItWasSent) {
  auto lease = held_with(plain);
  ASSERT_TRUE(lease.take_renewal(sent + 10s, sent + 10s));
  EXPECT_EQ(lease.renewed(30s, sent + 10s, sent + 12s), loss::none);
  EXPECT_EQ(lease.deadline(), plain_deadline + 10s);
  EXPECT_EQ(lease.next_event(), sent + 20s);
  EXPECT_EQ(lease.tick(plain_deadline), loss::none);
  EXPECT_EQ(lease.tick(plain_deadline + 10s), loss::expired);
}

TEST(LeaseMachine, ShorterTtlOnRenewalIsBelieved) {
  auto lease = held_with(plain);
  EXPECT_EQ(lease.renewed(6s, sent + 10s, sent + 10s), loss::none);
  EXPECT_EQ(lease.deadline(), sent + 10s + 6s - 60ms - 3s);
  EXPECT_EQ(lease.next_event(), sent + 12s);
}

TEST(LeaseMachine, RenewalThatGrantsLessThanItTookIsALoss) {
  auto lease = held_with(plain);
  EXPECT_EQ(lease.renewed(6s, sent + 10s, sent + 13s), loss::expired);
  EXPECT_FALSE(lease.is_held());
}

TEST(LeaseMachine, LateRenewalAnswerIsALoss) {
  auto lease = held_with(plain);
  ASSERT_TRUE(lease.take_renewal(sent + 10s, sent + 10s));
  EXPECT_EQ(lease.renewed(30s, sent + 10s, plain_deadline), loss::expired);
  EXPECT_FALSE(lease.is_held());
}

TEST(LeaseMachine, AnswerToAnOlderRenewalChangesNothing) {
  auto lease = held_with(plain);
  ASSERT_EQ(lease.renewed(30s, sent + 12s, sent + 12s), loss::none);
  const auto deadline = lease.deadline();
  const auto next = lease.next_event();
  EXPECT_EQ(lease.renewed(24h, sent + 11s, sent + 13s), loss::none);
  EXPECT_EQ(lease.renewed(24h, sent + 12s, sent + 13s), loss::none) << "nor does the same again";
  EXPECT_EQ(lease.deadline(), deadline);
  EXPECT_EQ(lease.next_event(), next);
}

TEST(LeaseMachine, RefusalLosesTheLeaseAndSaysWhy) {
  for (const auto why : {loss::deleted, loss::taken, loss::session}) {
    auto lease = held_with(plain);
    ASSERT_TRUE(lease.take_renewal(sent + 10s, sent + 10s));
    EXPECT_EQ(lease.refused(why), why);
    EXPECT_FALSE(lease.is_held());
    EXPECT_EQ(lease.why_lost(), why);
    EXPECT_EQ(lease.tick(sent + 1h), loss::none);
  }
}

TEST(LeaseMachine, FailedRenewalIsTriedAgainSoonUntilTheDeadline) {
  auto lease = held_with(plain);
  auto now = sent + 10s;
  int tries = 0;
  while (lease.take_renewal(now, now)) {
    ++tries;
    if (lease.renewal_failed(now) != loss::none) break;
    const auto next = lease.next_event();
    ASSERT_GT(next, now) << "no spinning on a store that is away";
    ASSERT_LE(next - now, 1s) << "no dawdling either";
    now = next;
    if (now == lease.deadline()) break;
  }
  EXPECT_EQ(now, plain_deadline);
  EXPECT_GE(tries, 10);
  EXPECT_EQ(lease.tick(now), loss::expired);
}

TEST(LeaseMachine, PauseBetweenFailedRenewalsFollowsTheTtlWithinBounds) {
  const auto pause = [](duration ttl) {
    const lease_rule rule{.ttl = ttl, .validity = {.drift_per_mille = 0, .margin = 0ns}};
    lease_machine lease{rule, {fencing_token{1}, ttl, sent}, sent};
    EXPECT_EQ(lease.renewal_failed(sent), loss::none);
    return lease.next_event() - sent;
  };
  EXPECT_EQ(pause(20ms), 5ms);
  EXPECT_EQ(pause(2s), 100ms);
  EXPECT_EQ(pause(24h), 250ms);
}

TEST(LeaseMachine, FailureThatComesAfterTheDeadlineIsALoss) {
  auto lease = held_with(plain);
  ASSERT_TRUE(lease.take_renewal(sent + 10s, sent + 10s));
  EXPECT_EQ(lease.renewal_failed(plain_deadline), loss::expired);
}

TEST(LeaseMachine, WithoutRenewalTheNextEventIsTheDeadline) {
  auto rule = plain;
  rule.renew = false;
  auto lease = held_with(rule);
  EXPECT_EQ(lease.next_event(), plain_deadline);
  EXPECT_FALSE(lease.take_renewal(never, sent + 20s));
  EXPECT_EQ(lease.renewed(30s, sent + 20s, sent + 20s), loss::none) << "by hand it may be";
  EXPECT_EQ(lease.deadline(), plain_deadline + 20s);
}

TEST(LeaseMachine, MaxHoldEndsALeaseHoweverOftenItWasRenewed) {
  auto lease = held_with(with_max_hold(40s));
  ASSERT_EQ(lease.renewed(30s, sent + 10s, sent + 10s), loss::none);
  ASSERT_EQ(lease.renewed(30s, sent + 20s, sent + 20s), loss::none);
  EXPECT_EQ(lease.deadline(), sent + 40s);
  EXPECT_EQ(lease.next_event(), sent + 40s) << "valid to the end: not renewed any more";
  EXPECT_FALSE(lease.take_renewal(sent + 39s, sent + 39s));
  EXPECT_EQ(lease.tick(sent + 40s - 1ns), loss::none);
  EXPECT_EQ(lease.tick(sent + 40s), loss::max_hold);
}

TEST(LeaseMachine, MaxHoldBelowTheTtlNeedsNoRenewal) {
  auto lease = held_with(with_max_hold(5s));
  EXPECT_EQ(lease.deadline(), sent + 5s);
  EXPECT_EQ(lease.next_event(), sent + 5s);
  EXPECT_EQ(lease.tick(sent + 5s), loss::max_hold);
}

TEST(LeaseMachine, EndlessMaxHoldDoesNotOverflow) {
  EXPECT_EQ(held_with(with_max_hold(duration::max())).deadline(), plain_deadline);
}

TEST(LeaseMachine, HolderThatMakesNoProgressIsNotRenewedAndLosesTheLease) {
  auto lease = held_with(with_progress(8s));
  EXPECT_FALSE(lease.take_renewal(sent + 10s, sent + 10s));
  const auto next = lease.next_event();
  EXPECT_GT(next, sent + 10s);
  EXPECT_LE(next, sent + 11s) << "progress may be made after all";
  EXPECT_EQ(lease.tick(plain_deadline), loss::no_progress);
}

TEST(LeaseMachine, ProgressMadeAfterAllIsRenewedAgain) {
  auto lease = held_with(with_progress(8s));
  ASSERT_FALSE(lease.take_renewal(sent + 10s, sent + 10s));
  lease.progress(sent + 10s);
  const auto next = lease.next_event();
  EXPECT_TRUE(lease.take_renewal(next, next));
}

TEST(LeaseMachine, ProgressExactlyInTimeCounts) {
  auto lease = held_with(with_progress(8s));
  lease.progress(sent + 2s);
  EXPECT_TRUE(lease.take_renewal(sent + 10s, sent + 10s));
}

TEST(LeaseMachine, LossOfAHolderThatMadeProgressIsExpiry) {
  auto lease = held_with(with_progress(8s));
  lease.progress(plain_deadline - 1s);
  EXPECT_EQ(lease.tick(plain_deadline), loss::expired);
}

}  // namespace holdfast::test
