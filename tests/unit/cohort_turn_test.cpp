// How long a lock goes from thread to thread of a client before others have their turn.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "core/cohort.hpp"

using namespace std::chrono_literals;

namespace holdfast::test {

namespace {

using core::cohort_turn;

constexpr core::time_point start{1h};
constexpr core::duration ttl = 30s;
constexpr core::time_point valid_until = start + ttl;

cohort_turn turn_of(std::uint64_t token, std::uint64_t block) {
  return {{fencing_token{token}, ttl, start, block}, start};
}

}  // namespace

TEST(CohortTurn, WantsManyTokensOnlyIfSomebodyWaitsHere) {
  EXPECT_EQ(core::tokens_wanted(0), 1U);
  EXPECT_EQ(core::tokens_wanted(1), core::cohort_hands_max);
  EXPECT_EQ(core::tokens_wanted(1000), core::cohort_hands_max);
}

TEST(CohortTurn, HasNothingToPassWithoutAGrant) {
  EXPECT_FALSE(cohort_turn{}.may_pass(valid_until, ttl, start));
}

TEST(CohortTurn, GrantOfOneTokenGoesToNobodyElse) {
  EXPECT_FALSE(turn_of(100, 1).may_pass(valid_until, ttl, start));
}

TEST(CohortTurn, EndsAfterItsTime) {
  const auto turn = turn_of(100, 64);
  EXPECT_TRUE(turn.may_pass(valid_until, ttl, start + core::cohort_time_max - 1ns));
  EXPECT_FALSE(turn.may_pass(valid_until, ttl, start + core::cohort_time_max));
}

TEST(CohortTurn, LeaseThatIsAboutToEndGoesToNobodyElse) {
  const auto turn = turn_of(100, 64);
  EXPECT_TRUE(turn.may_pass(start + ttl / 4 + 1ns, ttl, start));
  EXPECT_FALSE(turn.may_pass(start + ttl / 4, ttl, start));
  EXPECT_FALSE(turn.may_pass(start - 1ns, ttl, start));
}

TEST(CohortTurn, LeaseMustBeWorthHavingByTheTermsOfItsReceiver) {
  core::lease_rule to{.ttl = 30s, .validity = {.drift_per_mille = 0, .margin = 3s}};
  EXPECT_FALSE(core::worth_passing(to, 1s, start, start)) << "its margin is more than that";
  EXPECT_FALSE(core::worth_passing(to, 4s, start, start)) << "a quarter, and no more";
  EXPECT_TRUE(core::worth_passing(to, 4s + 1ns, start, start));
  EXPECT_FALSE(core::worth_passing(to, 4s + 1ns, start, start + 1ns));
}

TEST(CohortTurn, LeaseThatNothingRenewsIsPassedWithItsWholeTtlOrNotAtAll) {
  core::lease_rule to{.ttl = 10s, .validity = {.drift_per_mille = 0, .margin = 1s}, .renew = false};
  EXPECT_TRUE(core::worth_passing(to, 30s, start, start + 20s));
  EXPECT_FALSE(core::worth_passing(to, 30s, start, start + 20s + 1ns));
  EXPECT_FALSE(core::worth_passing(to, 9s, start, start));
}

TEST(CohortTurn, ReceiverGetsWhatIsLeftAndNoMoreThanItsOwnTtl) {
  core::lease_rule to;
  to.ttl = 10s;
  const auto later = start + 15s;
  const auto longer = core::as_passed(to, {fencing_token{7}, 30s, start, 1}, later);
  EXPECT_EQ(longer.counted_from + longer.ttl, later + 10s);
  EXPECT_EQ(longer.ttl, 10s);
  EXPECT_EQ(longer.token, fencing_token{7});
  const auto shorter = core::as_passed(to, {fencing_token{7}, 24s, start, 1}, later);
  EXPECT_EQ(shorter.counted_from, start) << "never counted from now if that is more";
  EXPECT_EQ(shorter.ttl, 24s);
}

RC_GTEST_PROP(CohortTurn, HandsOutEveryTokenOfTheBlockOnceAndInOrder, ()) {
  const auto first = *rc::gen::inRange<std::uint64_t>(1, std::uint64_t{1} << 53U);
  const auto block = *rc::gen::inRange<std::uint64_t>(1, core::cohort_hands_max + 1);
  auto turn = turn_of(first, block);
  std::uint64_t last = first;  // the holder that the store chose has it
  while (turn.may_pass(valid_until, ttl, start)) {
    const auto token = turn.pass().value();
    RC_ASSERT(token == last + 1);
    last = token;
  }
  RC_ASSERT(last == first + block - 1);
}

}  // namespace holdfast::test
