// When a release is asked again, and what its answer means by then.
#include "core/release_machine.hpp"

#include <array>

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

using namespace std::chrono_literals;

namespace holdfast::test {

namespace {

using core::release_machine;
using core::removal;
using core::time_point;

constexpr time_point start{1h};
constexpr std::array all_answers{removal::released, removal::gone, removal::taken, removal::unsure};

}  // namespace

TEST(ReleaseMachine, FirstAnswerMeansWhatItSays) {
  const release_machine release{start + 1s, 1};
  for (const auto said : all_answers)
    EXPECT_EQ(release.on_answer(said), said);
  EXPECT_FALSE(release.went_unanswered());
}

TEST(ReleaseMachine, AfterAnUnansweredReleaseOnlyReleasedIsCertain) {
  release_machine release{start + 1s, 1};
  ASSERT_TRUE(release.on_failure(errc::outcome_unknown, start));
  EXPECT_TRUE(release.went_unanswered());
  EXPECT_EQ(release.on_answer(removal::released), removal::released);
  EXPECT_EQ(release.on_answer(removal::gone), removal::unsure);
  EXPECT_EQ(release.on_answer(removal::taken), removal::unsure);
  EXPECT_EQ(release.on_answer(removal::unsure), removal::unsure);
}

TEST(ReleaseMachine, FailureThatSentNothingLeavesLaterAnswersCertain) {
  release_machine release{start + 1s, 1};
  for (const auto code : {errc::store_unreachable, errc::store_loading, errc::store_busy,
                          errc::out_of_memory, errc::read_only}) {
    EXPECT_TRUE(release.on_failure(code, start)) << make_error_code(code).message();
  }
  EXPECT_FALSE(release.went_unanswered());
  EXPECT_EQ(release.on_answer(removal::gone), removal::gone);
}

TEST(ReleaseMachine, PermanentFailureGivesUpAtOnce) {
  for (const auto code : {errc::not_permitted, errc::not_authenticated, errc::wrong_type,
                          errc::moved, errc::incompatible, errc::store_refused}) {
    release_machine release{start + 1h, 1};
    EXPECT_FALSE(release.on_failure(code, start)) << make_error_code(code).message();
  }
}

TEST(ReleaseMachine, OverloadIsTriedAgainBecauseNoOtherClientGivesTheLockBack) {
  release_machine release{start + 1h, 1};
  EXPECT_TRUE(release.on_failure(errc::overloaded, start));
  EXPECT_FALSE(release.went_unanswered());
}

TEST(ReleaseMachine, RemembersAnUnansweredReleaseWhenItGivesUp) {
  release_machine release{start, 1};
  EXPECT_FALSE(release.on_failure(errc::outcome_unknown, start));
  EXPECT_TRUE(release.went_unanswered());
}

RC_GTEST_PROP(ReleaseMachine, AsksAgainLaterAndNeverPastItsBudget, (std::uint64_t seed)) {
  const auto budget = std::chrono::milliseconds{*rc::gen::inRange(1, 5000)};
  release_machine release{start + budget, seed};
  auto now = start;
  int tries = 0;
  while (const auto again = release.on_failure(errc::store_unreachable, now)) {
    RC_ASSERT(*again > now);
    RC_ASSERT(*again - now <= 250ms);
    RC_ASSERT(*again < start + budget);
    now = *again;
    RC_ASSERT(++tries <= budget / 1ms);
  }
  RC_ASSERT(start + budget - now <= 250ms);
}

}  // namespace holdfast::test
