// What an acquisition does next, for every kind of answer.
#include "core/acquire_machine.hpp"

#include <array>

#include <gtest/gtest.h>

#include "core/passing.hpp"

using namespace std::chrono_literals;

namespace holdfast::test {

namespace {

using core::acquire_machine;
using core::acquire_outcome;
using core::acquire_rule;
using core::acquire_step;
using core::busy;
using core::duration;
using core::grant;
using core::time_point;
using verb = acquire_step::verb;

constexpr time_point start{1h};

acquire_rule waiting_for(duration wait) {
  return {.started = start,
          .wait_until = core::after(start, wait),
          .operation_timeout = 2s,
          .unreachable_limit = 5s,
          .release_budget = 1s,
          .validity = {.drift_per_mille = 10, .margin = 3s}};
}

grant granted_at(time_point sent) { return {fencing_token{42}, 30s, sent}; }
busy held_for(std::optional<duration> remaining) {
  return {holder{.host = "elsewhere"}, remaining, false, {}};
}
failure of(errc code) { return {code, "what happened"}; }

constexpr std::array passing{errc::outcome_unknown, errc::store_unreachable, errc::store_loading,
                             errc::store_busy,      errc::out_of_memory,     errc::read_only};
constexpr std::array permanent{errc::not_authenticated,
                               errc::not_permitted,
                               errc::wrong_type,
                               errc::moved,
                               errc::incompatible,
                               errc::store_refused,
                               errc::invalid_argument,
                               errc::overloaded,
                               errc::forked};

#define EXPECT_DONE(step, how)        \
  EXPECT_EQ((step).what, verb::done); \
  EXPECT_EQ(machine.outcome(), acquire_outcome::how)

}  // namespace

TEST(AcquireMachine, FreeLockIsOneAsk) {
  acquire_machine machine{waiting_for(0s), 1};
  const auto ask = machine.start(start);
  EXPECT_EQ(ask.what, verb::ask);
  EXPECT_EQ(ask.until, start + 2s);
  EXPECT_DONE(machine.on_answer(granted_at(start), start + 1ms), granted);
  EXPECT_EQ(machine.granted().token, fencing_token{42});
  EXPECT_EQ(machine.granted().counted_from, start);
  EXPECT_FALSE(machine.met());
}

TEST(AcquireMachine, WithoutAWaitABusyLockIsAskedOnce) {
  acquire_machine machine{waiting_for(0s), 1};
  ASSERT_EQ(machine.start(start).what, verb::ask);
  EXPECT_DONE(machine.on_answer(held_for(10s), start + 1ms), busy);
  ASSERT_TRUE(machine.met());
  EXPECT_EQ(machine.met()->holder.host, "elsewhere");
}

TEST(AcquireMachine, BusyLockIsWaitedForAndAskedAgain) {
  acquire_machine machine{waiting_for(10s), 1};
  static_cast<void>(machine.start(start));
  const auto wait = machine.on_answer(held_for(10s), start + 1ms);
  ASSERT_EQ(wait.what, verb::wait);
  EXPECT_GT(wait.until, start + 1ms);
  const auto ask = machine.on_woken(false, wait.until);
  EXPECT_EQ(ask.what, verb::ask);
  EXPECT_EQ(ask.until, wait.until + 2s);
  EXPECT_DONE(machine.on_answer(granted_at(wait.until), wait.until + 1ms), granted);
  EXPECT_TRUE(machine.met()) << "it did meet a holder on the way";
}

TEST(AcquireMachine, WaitEndsWithOneLastAsk) {
  for (const duration remaining : {duration{20ms}, duration{10s}}) {
    acquire_machine machine{waiting_for(50ms), 1};
    static_cast<void>(machine.start(start));
    auto now = start + 49ms;
    const auto wait = machine.on_answer(held_for(remaining), now);
    ASSERT_EQ(wait.what, verb::wait);
    EXPECT_LE(wait.until, start + 50ms);
    now = start + 50ms;
    ASSERT_EQ(machine.on_woken(false, now).what, verb::ask);
    EXPECT_DONE(machine.on_answer(held_for(remaining), now + 1ms), busy);
  }
}

// An ask whose time is up before it leaves is one that cannot be answered: a plain "busy" would
// become a failure whose outcome is not known.
TEST(AcquireMachine, LastAskOfALongWaitHasTimeToBeAnswered) {
  acquire_machine machine{waiting_for(10s), 1};
  static_cast<void>(machine.start(start));
  const auto wait = machine.on_answer(held_for(1h), start + 10s - 1ms);
  ASSERT_EQ(wait.what, verb::wait);
  ASSERT_EQ(wait.until, start + 10s);
  const auto ask = machine.on_woken(false, wait.until);
  ASSERT_EQ(ask.what, verb::ask);
  EXPECT_GT(ask.until, wait.until);
}

TEST(AcquireMachine, GrantExpiredOnArrivalIsWithdrawnAndNotBelieved) {
  acquire_machine machine{waiting_for(10min), 1};
  static_cast<void>(machine.start(start));
  const auto deadline = start + 26'700ms;
  const auto step = machine.on_answer(granted_at(start), deadline);
  EXPECT_EQ(step.what, verb::withdraw);
  EXPECT_EQ(step.until, deadline + 1s);
  EXPECT_DONE(machine.on_withdrawn(true, deadline + 1ms), late);
}

TEST(AcquireMachine, GrantJustInTimeIsBelieved) {
  acquire_machine machine{waiting_for(10min), 1};
  static_cast<void>(machine.start(start));
  EXPECT_DONE(machine.on_answer(granted_at(start), start + 26'700ms - 1ns), granted);
}

TEST(AcquireMachine, LateGrantThatCannotBeWithdrawnIsUnknown) {
  acquire_machine machine{waiting_for(10min), 1};
  static_cast<void>(machine.start(start));
  ASSERT_EQ(machine.on_answer(granted_at(start), start + 1min).what, verb::withdraw);
  EXPECT_DONE(machine.on_withdrawn(false, start + 2min), failed);
  EXPECT_EQ(machine.why().code, errc::outcome_unknown);
}

TEST(AcquireMachine, UnansweredAskIsAskedAgainByTheSameAttempt) {
  acquire_machine machine{waiting_for(10s), 1};
  static_cast<void>(machine.start(start));
  const auto pause = machine.on_failure(of(errc::outcome_unknown), start + 2s);
  ASSERT_EQ(pause.what, verb::pause);
  EXPECT_GT(pause.until, start + 2s);
  EXPECT_LE(pause.until, start + 2s + 250ms);
  ASSERT_EQ(machine.on_woken(false, pause.until).what, verb::ask);
  EXPECT_DONE(machine.on_answer(granted_at(pause.until), pause.until + 1ms), granted);
}

TEST(AcquireMachine, EveryPassingFailureIsTriedAgain) {
  for (const auto code : passing) {
    EXPECT_TRUE(core::is_passing(code)) << make_error_code(code).message();
    acquire_machine machine{waiting_for(10s), 1};
    static_cast<void>(machine.start(start));
    EXPECT_EQ(machine.on_failure(of(code), start + 1ms).what, verb::pause);
  }
}

// A set of nodes that may not vote yet: it answers, and will serve.
TEST(AcquireMachine, StoreThatWillServeIsWaitedForHoweverLittleAnOutageIs) {
  auto rule = waiting_for(10s);
  rule.unreachable_limit = 1ms;
  acquire_machine machine{rule, 1};
  auto step = machine.start(start);
  core::time_point now = start;
  while (now < start + 10s) {
    step = machine.on_answer(core::not_yet{of(errc::store_loading)}, now);
    ASSERT_EQ(step.what, verb::pause);
    ASSERT_LE(step.until, start + 10s);
    now = step.until;
    ASSERT_EQ(machine.on_woken(false, now).what, verb::ask);
  }
  EXPECT_DONE(machine.on_answer(core::not_yet{of(errc::store_loading)}, now), failed);
  EXPECT_EQ(machine.why().code, errc::store_loading);
}

TEST(AcquireMachine, PermanentFailureEndsItAtOnce) {
  for (const auto code : permanent) {
    EXPECT_FALSE(core::is_passing(code)) << make_error_code(code).message();
    acquire_machine machine{waiting_for(10s), 1};
    static_cast<void>(machine.start(start));
    EXPECT_DONE(machine.on_failure(of(code), start + 1ms), failed);
    EXPECT_EQ(machine.why().code, code);
    EXPECT_EQ(machine.why().message, "what happened");
  }
}

TEST(AcquireMachine, PermanentFailureAfterAnUnansweredAskIsWithdrawn) {
  acquire_machine machine{waiting_for(10s), 1};
  static_cast<void>(machine.start(start));
  ASSERT_EQ(machine.on_failure(of(errc::outcome_unknown), start + 1s).what, verb::pause);
  ASSERT_EQ(machine.on_woken(false, start + 2s).what, verb::ask);
  ASSERT_EQ(machine.on_failure(of(errc::not_permitted), start + 2s).what, verb::withdraw);
  EXPECT_DONE(machine.on_withdrawn(true, start + 2s), failed);
  EXPECT_EQ(machine.why().code, errc::not_permitted);
}

TEST(AcquireMachine, GivingUpAfterAnUnansweredAskWithdrawsIt) {
  for (const bool sure : {true, false}) {
    acquire_machine machine{waiting_for(0s), 1};
    static_cast<void>(machine.start(start));
    const auto step = machine.on_failure(of(errc::outcome_unknown), start + 2s);
    ASSERT_EQ(step.what, verb::withdraw);
    EXPECT_EQ(step.until, start + 3s);
    EXPECT_DONE(machine.on_withdrawn(sure, start + 2s), failed);
    EXPECT_EQ(machine.why().code, sure ? errc::store_unreachable : errc::outcome_unknown);
    EXPECT_NE(machine.why().message.find("what happened"), std::string::npos);
  }
}

TEST(AcquireMachine, BusyAfterAnUnansweredAskStillWithdraws) {
  acquire_machine machine{waiting_for(1s), 1};
  static_cast<void>(machine.start(start));
  ASSERT_EQ(machine.on_failure(of(errc::outcome_unknown), start + 900ms).what, verb::pause);
  ASSERT_EQ(machine.on_woken(false, start + 950ms).what, verb::ask);
  ASSERT_EQ(machine.on_answer(held_for(10s), start + 1s).what, verb::withdraw);
  EXPECT_DONE(machine.on_withdrawn(true, start + 1s), busy);
}

TEST(AcquireMachine, FailureThatSentNothingLeavesNothingToWithdraw) {
  acquire_machine machine{waiting_for(0s), 1};
  static_cast<void>(machine.start(start));
  EXPECT_DONE(machine.on_failure(of(errc::store_unreachable), start + 2s), failed);
  EXPECT_EQ(machine.why().code, errc::store_unreachable);
}

TEST(AcquireMachine, UnreachableStoreIsGivenUpAtTheLimitHoweverLongTheWait) {
  acquire_machine machine{waiting_for(forever), 1};
  static_cast<void>(machine.start(start));
  auto now = start + 1s;
  auto step = machine.on_failure(of(errc::store_unreachable), now);
  while (step.what == verb::pause) {
    ASSERT_GT(step.until, now);
    now = step.until;
    ASSERT_EQ(machine.on_woken(false, now).what, verb::ask);
    step = machine.on_failure(of(errc::store_unreachable), now);
  }
  EXPECT_DONE(step, failed);
  // From when it was asked first, not from when that was found to have failed.
  EXPECT_GE(now, start + 5s - 250ms);
  EXPECT_LT(now, start + 5s);
}

TEST(AcquireMachine, AnAnswerStartsTheUnreachableLimitAnew) {
  acquire_machine machine{waiting_for(forever), 1};
  static_cast<void>(machine.start(start));
  for (int i = 0; i < 10; ++i) {
    const auto now = start + i * 4s;
    ASSERT_EQ(machine.on_failure(of(errc::store_unreachable), now).what, verb::pause) << i;
    ASSERT_EQ(machine.on_woken(false, now + 3s).what, verb::ask);
    ASSERT_EQ(machine.on_answer(held_for(1h), now + 3s).what, verb::wait);
    ASSERT_EQ(machine.on_woken(false, now + 3500ms).what, verb::ask);
  }
}

TEST(AcquireMachine, AnAnswerMakesRetriesQuickAgain) {
  acquire_machine machine{waiting_for(forever), 1};
  static_cast<void>(machine.start(start));
  for (int i = 0; i < 10; ++i) {
    ASSERT_EQ(machine.on_failure(of(errc::store_loading), start).what, verb::pause);
  }
  EXPECT_GT(machine.on_failure(of(errc::store_loading), start).until, start + 100ms);
  ASSERT_EQ(machine.on_answer(held_for(1h), start).what, verb::wait);
  EXPECT_LE(machine.on_failure(of(errc::store_loading), start).until, start + 2ms);
}

TEST(AcquireMachine, StopWhileWaitingEndsIt) {
  acquire_machine machine{waiting_for(10s), 1};
  static_cast<void>(machine.start(start));
  ASSERT_EQ(machine.on_answer(held_for(10s), start).what, verb::wait);
  EXPECT_DONE(machine.on_woken(true, start + 1ms), stopped);
}

TEST(AcquireMachine, StopWhilePausingWithdrawsWhatMayHaveBeenGranted) {
  acquire_machine machine{waiting_for(10s), 1};
  static_cast<void>(machine.start(start));
  ASSERT_EQ(machine.on_failure(of(errc::outcome_unknown), start).what, verb::pause);
  ASSERT_EQ(machine.on_woken(true, start + 1ms).what, verb::withdraw);
  EXPECT_DONE(machine.on_withdrawn(true, start + 2ms), stopped);
}

TEST(AcquireMachine, StopWhosePossibleGrantCannotBeWithdrawnIsUnknown) {
  acquire_machine machine{waiting_for(10s), 1};
  static_cast<void>(machine.start(start));
  ASSERT_EQ(machine.on_failure(of(errc::outcome_unknown), start).what, verb::pause);
  ASSERT_EQ(machine.on_woken(true, start + 1ms).what, verb::withdraw);
  EXPECT_DONE(machine.on_withdrawn(false, start + 2ms), failed);
  EXPECT_EQ(machine.why().code, errc::outcome_unknown);
}

TEST(AcquireMachine, StopWhilePausingAfterAPlainFailureEndsIt) {
  acquire_machine machine{waiting_for(10s), 1};
  static_cast<void>(machine.start(start));
  ASSERT_EQ(machine.on_failure(of(errc::store_loading), start).what, verb::pause);
  EXPECT_DONE(machine.on_woken(true, start + 1ms), stopped);
}

}  // namespace holdfast::test
