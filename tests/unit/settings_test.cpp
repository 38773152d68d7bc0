// Every option's bounds, and messages that name the option.
#include "core/settings.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace std::chrono_literals;

namespace holdfast::test {

namespace {

using core::check;
using core::check_name;
using core::make_lease_rule;
using testing::HasSubstr;

template <class T>
void expect_refused(const result<T>& answer, const std::string& names) {
  ASSERT_FALSE(answer) << names;
  EXPECT_EQ(answer.error().code, errc::invalid_argument);
  EXPECT_THAT(answer.error().message, HasSubstr(names));
}

}  // namespace

TEST(Settings, DefaultsAreGoodAndMeanWhatTheyShould) {
  EXPECT_TRUE(check(client_options{}));
  const auto rule = make_lease_rule(lock_options{}, 10);
  ASSERT_TRUE(rule);
  EXPECT_EQ(rule->ttl, 30s);
  EXPECT_EQ(rule->validity.margin, 3s) << "a tenth of the TTL";
  EXPECT_EQ(rule->validity.drift_per_mille, 10U);
  EXPECT_TRUE(rule->renew);
  EXPECT_EQ(rule->max_hold, 0s);
  EXPECT_EQ(rule->progress_within, 0s);
}

TEST(Settings, EveryOptionReachesTheRule) {
  const auto rule = make_lease_rule(
      {.ttl = 10s, .margin = 4s, .renew = true, .max_hold = 1min, .progress_within = 5s}, 25);
  ASSERT_TRUE(rule);
  EXPECT_EQ(rule->ttl, 10s);
  EXPECT_EQ(rule->validity.margin, 4s);
  EXPECT_EQ(rule->max_hold, 1min);
  EXPECT_EQ(rule->progress_within, 5s);
  EXPECT_EQ(rule->validity.drift_per_mille, 25U);
  EXPECT_FALSE(make_lease_rule({.renew = false}, 0)->renew);
}

TEST(Settings, TtlIsFrom20MillisecondsTo24Hours) {
  EXPECT_TRUE(make_lease_rule({.ttl = 20ms}, 10));
  EXPECT_TRUE(make_lease_rule({.ttl = 24h}, 10));
  for (const auto bad : {19ms, 0ms, -1ms, std::chrono::milliseconds{24h} + 1ms}) {
    expect_refused(make_lease_rule({.ttl = bad}, 10), "ttl");
  }
}

TEST(Settings, MarginIsAtMostHalfOfTheTtl) {
  EXPECT_TRUE(make_lease_rule({.ttl = 10s, .margin = 0ms}, 10));
  EXPECT_TRUE(make_lease_rule({.ttl = 10s, .margin = 5s}, 10));
  expect_refused(make_lease_rule({.ttl = 10s, .margin = 5001ms}, 10), "margin");
  expect_refused(make_lease_rule({.ttl = 10s, .margin = -1ms}, 10), "margin");
}

TEST(Settings, MaxHoldIsNotNegative) {
  EXPECT_TRUE(make_lease_rule({.max_hold = 1ms}, 10));
  expect_refused(make_lease_rule({.max_hold = -1ms}, 10), "max_hold");
}

TEST(Settings, ProgressIsNotNegativeAndNeedsRenewal) {
  EXPECT_TRUE(make_lease_rule({.progress_within = 1ms}, 10));
  expect_refused(make_lease_rule({.progress_within = -1ms}, 10), "progress_within");
  expect_refused(make_lease_rule({.renew = false, .progress_within = 1s}, 10), "progress_within");
  EXPECT_TRUE(make_lease_rule({.renew = false}, 10));
}

TEST(Settings, LabelIsAtMost256Bytes) {
  EXPECT_TRUE(make_lease_rule({.label = std::string(256, '\0')}, 10));
  expect_refused(make_lease_rule({.label = std::string(257, 'x')}, 10), "label");
}

// In nanoseconds, 2^64 ns and 30 s are the same 64 bits.
TEST(Settings, DurationsTooLongForTheClockAreNotTakenForShortOnes) {
  constexpr std::chrono::milliseconds wrapped{18'446'744'073'710 + 30'000};
  expect_refused(make_lease_rule({.ttl = wrapped}, 10), "ttl");
  expect_refused(check({.operation_timeout = wrapped}), "operation_timeout");
  const auto long_hold = make_lease_rule({.max_hold = wrapped}, 10);
  if (long_hold) {
    EXPECT_GT(long_hold->max_hold, 24h);
  } else {
    expect_refused(long_hold, "max_hold");
  }
}

TEST(Settings, LongestMaxHoldIsNoLimitRatherThanAMistake) {
  const auto rule = make_lease_rule({.max_hold = std::chrono::milliseconds::max()}, 10);
  ASSERT_TRUE(rule) << rule.error().message;
  EXPECT_GT(rule->max_hold, 24h);
}

TEST(Settings, WaitLimitIsNotNegativeAndMayBeForEver) {
  EXPECT_TRUE(check({.wait_limit = 0s}));
  EXPECT_TRUE(check({.wait_limit = forever}));
  expect_refused(check({.wait_limit = -1ns}), "wait_limit");
}

TEST(Settings, OperationLimitsAreFromOneMillisecondToADay) {
  for (const auto bad : {0ms, -1ms, std::chrono::milliseconds{24h} + 1ms}) {
    expect_refused(check({.operation_timeout = bad}), "operation_timeout");
    expect_refused(check({.unreachable_limit = bad}), "unreachable_limit");
    expect_refused(check({.release_budget = bad}), "release_budget");
  }
  for (const auto good : {1ms, std::chrono::milliseconds{24h}}) {
    EXPECT_TRUE(check({.operation_timeout = good}));
    EXPECT_TRUE(check({.unreachable_limit = good}));
    EXPECT_TRUE(check({.release_budget = good}));
  }
}

TEST(Settings, DriftIsAtMostATenth) {
  EXPECT_TRUE(check({.clock_drift_per_mille = 0}));
  EXPECT_TRUE(check({.clock_drift_per_mille = 100}));
  expect_refused(check({.clock_drift_per_mille = 101}), "clock_drift_per_mille");
}

TEST(Settings, ClientsCheckTheLockOptionsTheyCarry) {
  expect_refused(check({.lock = {.ttl = 1ms}}), "ttl");
  expect_refused(check({.lock = {.max_hold = -1ms}}), "max_hold");
}

TEST(Settings, MessagesSayWhatWasGivenAndWhatIsAllowed) {
  const auto answer = make_lease_rule({.ttl = 7ms}, 10);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().message, "ttl must be between 20 ms and 24 h, not 7 ms");
}

TEST(Settings, WorstGoodOptionsStillLeaveTimeToRenew) {
  const auto rule = make_lease_rule({.ttl = 20ms, .margin = 10ms}, core::drift_per_mille_max);
  ASSERT_TRUE(rule);
  const core::time_point sent{1h};
  EXPECT_GT(rule->validity.deadline(sent, rule->ttl), sent + rule->ttl / 3);
}

TEST(Settings, NamesAreAnyBytesFromOneTo512) {
  EXPECT_TRUE(check_name("x"));
  EXPECT_TRUE(check_name(std::string(512, '\0')));
  EXPECT_TRUE(check_name("\xff\n}{ *"));
  expect_refused(check_name(""), "name");
  expect_refused(check_name(std::string(513, 'x')), "512");
}

}  // namespace holdfast::test
