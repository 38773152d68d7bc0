// How long an acquisition waits between asks: soon enough, never spinning, and for queues.
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "core/acquire_machine.hpp"

using namespace std::chrono_literals;

namespace holdfast::test {

namespace {

using core::acquire_machine;
using core::acquire_outcome;
using core::acquire_rule;
using core::acquire_step;
using core::busy;
using core::duration;
using core::time_point;
using verb = acquire_step::verb;

constexpr time_point start{1h};
constexpr acquire_rule patient{.started = start,
                               .wait_until = core::never,
                               .operation_timeout = 2s,
                               .unreachable_limit = 5s,
                               .release_budget = 1s,
                               .validity = {.drift_per_mille = 10, .margin = 3s}};

busy held_for(std::optional<duration> remaining) { return {holder{}, remaining, false, {}}; }
busy queued_behind(std::optional<duration> remaining) { return {holder{}, remaining, true, 1s}; }

// How long it waits after an answer that comes now.
duration wait_after(acquire_machine& machine, const busy& what, time_point now = start) {
  const auto step = machine.on_answer(what, now);
  EXPECT_EQ(step.what, verb::wait);
  return step.until - now;
}

}  // namespace

TEST(AcquireWaiting, LongHeldLockIsPolledAtARateNobodyNotices) {
  acquire_machine machine{patient, 3};
  static_cast<void>(machine.start(start));
  auto now = start;
  int asks = 0;
  for (; now < start + 60s; ++asks)
    now += wait_after(machine, held_for(1h), now);
  EXPECT_LE(asks, 60 * 20 + 10);
  EXPECT_GE(asks, 60 * 10);
}

// What waiters of one client say travels in one batch if they say it at the same moment.
TEST(AcquireWaiting, StillHereIsSaidByAllAtOnce) {
  const auto due = [](time_point asked) {
    acquire_machine machine{patient, 3};
    static_cast<void>(machine.start(start));
    return asked + wait_after(machine, queued_behind(1h), asked);
  };
  for (const auto later : {1ms, 77ms, 400ms}) {
    EXPECT_EQ(due(start + later), due(start)) << later.count();
  }
  for (const auto asked : {start, start + 1ms, start + 499ms, start + 500ms, start + 999ms}) {
    EXPECT_GE(due(asked) - asked, 500ms);
    EXPECT_LE(due(asked) - asked, 1s) << "before the store thinks that it has gone";
  }
}

TEST(AcquireWaiting, ShortHeldLockIsAskedForSoon) {
  acquire_machine machine{patient, 3};
  static_cast<void>(machine.start(start));
  EXPECT_LE(wait_after(machine, held_for(1h)), 2ms);
  EXPECT_LE(wait_after(machine, held_for(1h)), 4ms);
}

TEST(AcquireWaiting, HolderWithoutExpiryIsPolledToo) {
  acquire_machine machine{patient, 3};
  static_cast<void>(machine.start(start));
  for (int i = 0; i < 20; ++i) {
    const auto pause = wait_after(machine, held_for(std::nullopt));
    EXPECT_GE(pause, 1ms);
    EXPECT_LE(pause, 100ms);
  }
}

RC_GTEST_PROP(AcquireWaiting, NeverOutlastsTheHolderByMoreThanALittleAndNeverSpins,
              (std::uint64_t seed)) {
  acquire_machine machine{patient, seed};
  static_cast<void>(machine.start(start));
  const auto rounds = *rc::gen::inRange(1, 12);
  for (int i = 0; i < rounds; ++i) {
    const duration remaining = std::chrono::microseconds{*rc::gen::inRange(0, 200'000)};
    const auto pause = wait_after(machine, held_for(remaining));
    RC_ASSERT(pause <= remaining + 1ms);
    RC_ASSERT(pause >= 1ms);
    RC_ASSERT(pause <= 100ms);
  }
}

// A foreign client may set any expiry it likes, and a store may be a moment behind.
TEST(AcquireWaiting, AbsurdRemainingTimesDoNotMakeItSpin) {
  for (const auto remaining : {duration::max(), duration::max() - 1ms, duration{-1s}}) {
    acquire_machine machine{patient, 3};
    static_cast<void>(machine.start(start));
    EXPECT_GE(wait_after(machine, held_for(remaining)), 1ms) << remaining.count();
  }
}

TEST(AcquireWaiting, EndOfTheWaitCutsThePause) {
  auto rule = patient;
  rule.wait_until = start + 5ms;
  acquire_machine machine{rule, 3};
  static_cast<void>(machine.start(start));
  const auto step = machine.on_answer(queued_behind(1h), start + 1ms);
  EXPECT_EQ(step.what, verb::wait);
  EXPECT_EQ(step.until, start + 5ms);
}

TEST(AcquireWaiting, QueuedAttemptReliesOnTheStoreAndAsksSeldom) {
  acquire_machine machine{patient, 3};
  static_cast<void>(machine.start(start));
  for (int i = 0; i < 5; ++i)
    EXPECT_EQ(wait_after(machine, queued_behind(1h)), 1s);
  EXPECT_EQ(wait_after(machine, queued_behind(300ms)), 301ms) << "the holder may just vanish";
}

TEST(AcquireWaiting, QueuedAttemptThatIsWokenAsksAtOnce) {
  acquire_machine machine{patient, 3};
  static_cast<void>(machine.start(start));
  ASSERT_EQ(machine.on_answer(queued_behind(1h), start).what, verb::wait);
  const auto ask = machine.on_woken(false, start + 10ms);
  EXPECT_EQ(ask.what, verb::ask);
  EXPECT_EQ(ask.until, start + 10ms + 2s);
}

TEST(AcquireWaiting, QueuedAttemptLeavesTheQueueWhenItStops) {
  for (const bool sure : {true, false}) {
    acquire_machine machine{patient, 3};
    static_cast<void>(machine.start(start));
    ASSERT_EQ(machine.on_answer(queued_behind(1h), start).what, verb::wait);
    const auto step = machine.on_woken(true, start + 10ms);
    ASSERT_EQ(step.what, verb::withdraw);
    EXPECT_EQ(step.until, start + 10ms + 1s);
    EXPECT_EQ(machine.on_withdrawn(sure, start + 20ms).what, verb::done);
    EXPECT_EQ(machine.outcome(), acquire_outcome::stopped);
  }
}

TEST(AcquireWaiting, QueuedAttemptLeavesTheQueueWhenItsWaitEnds) {
  auto rule = patient;
  rule.wait_until = start;
  acquire_machine machine{rule, 3};
  static_cast<void>(machine.start(start));
  ASSERT_EQ(machine.on_answer(queued_behind(1h), start + 1ms).what, verb::withdraw);
  EXPECT_EQ(machine.on_withdrawn(true, start + 2ms).what, verb::done);
  EXPECT_EQ(machine.outcome(), acquire_outcome::busy);
}

TEST(AcquireWaiting, QueuedAttemptLeavesTheQueueWhenItFails) {
  acquire_machine machine{patient, 3};
  static_cast<void>(machine.start(start));
  ASSERT_EQ(machine.on_answer(queued_behind(1h), start).what, verb::wait);
  ASSERT_EQ(machine.on_woken(false, start + 1s).what, verb::ask);
  ASSERT_EQ(machine.on_failure({errc::not_permitted, "no"}, start + 1s).what, verb::withdraw);
  EXPECT_EQ(machine.on_withdrawn(true, start + 1s).what, verb::done);
  EXPECT_EQ(machine.outcome(), acquire_outcome::failed);
}

TEST(AcquireWaiting, GrantedAttemptHasLeftTheQueueByItself) {
  acquire_machine machine{patient, 3};
  static_cast<void>(machine.start(start));
  ASSERT_EQ(machine.on_answer(queued_behind(1h), start).what, verb::wait);
  ASSERT_EQ(machine.on_woken(false, start + 1s).what, verb::ask);
  const core::grant got{fencing_token{8}, 30s, start + 1s};
  EXPECT_EQ(machine.on_answer(got, start + 1s).what, verb::done);
  EXPECT_EQ(machine.outcome(), acquire_outcome::granted);
}

}  // namespace holdfast::test
