// Nodes that may not vote: who is let in, and on what grounds.
#include "core/admission.hpp"

#include <gtest/gtest.h>

using namespace std::chrono_literals;

namespace holdfast::test {

namespace {

using core::admission;
using core::node_report;
using core::plan_admission;
using standing = node_report::standing;
using grounds = admission::grounds;

constexpr core::duration max_ttl = 60s;
const node_report votes{standing::votes};
const node_report away{standing::unreachable};

node_report blank(core::duration waited, std::string wait = {}) {
  return {standing::blank, waited, false, std::move(wait)};
}
node_report began_with(std::string waits, standing is = standing::votes) {
  return {is, {}, false, is == standing::votes ? "" : "r@1", std::move(waits)};
}
node_report restarted(core::duration waited, bool loses_nothing = false) {
  return {standing::restarted, waited, loses_nothing};
}

}  // namespace

TEST(Admission, NothingToDoWhenAllVote) {
  const auto plan = plan_admission({votes, votes, votes}, max_ttl);
  EXPECT_TRUE(plan.admit.empty());
  EXPECT_FALSE(plan.again);
  EXPECT_FALSE(plan.counters_lost);
}

TEST(Admission, EmptyNodeWaitsOutTheLongestTtl) {
  const auto early = plan_admission({votes, votes, blank(59s)}, max_ttl);
  EXPECT_TRUE(early.admit.empty());
  EXPECT_EQ(early.again, 1s);
  const auto then = plan_admission({votes, votes, blank(60s)}, max_ttl);
  ASSERT_EQ(then.admit.size(), 1U);
  EXPECT_EQ(then.admit[0], (admission{2, grounds::recovered}));
}

TEST(Admission, CountersComeFromAMajorityWithoutTheNode) {
  // Two of four others are not enough: a token may have gone to the node and the two that are away.
  const auto few = plan_admission({votes, votes, away, away, blank(1h)}, max_ttl);
  EXPECT_TRUE(few.admit.empty());
  const auto enough = plan_admission({votes, votes, votes, away, blank(1h)}, max_ttl);
  EXPECT_EQ(enough.admit.size(), 1U);
}

TEST(Admission, NodeThatLosesNothingIsBackAtOnceIfItsMarkerSurvived) {
  const auto plan = plan_admission({votes, away, restarted(0s, true)}, max_ttl);
  ASSERT_EQ(plan.admit.size(), 1U);
  EXPECT_EQ(plan.admit[0], (admission{2, grounds::kept}));
  auto emptied = blank(0s);
  emptied.loses_nothing = true;
  EXPECT_TRUE(plan_admission({votes, votes, emptied}, max_ttl).admit.empty());
}

TEST(Admission, NewSetBeginsOnceEveryNodeHasWaited) {
  const auto early = plan_admission({blank(60s), blank(10s), blank(60s)}, max_ttl);
  EXPECT_TRUE(early.admit.empty());
  EXPECT_EQ(early.again, 50s);
  const auto then = plan_admission({blank(60s), blank(61s), blank(60s)}, max_ttl);
  EXPECT_EQ(then.admit.size(), 3U);
  EXPECT_EQ(then.admit[1], (admission{1, grounds::all_new}));
}

TEST(Admission, NewSetRemembersWhatItBeganWith) {
  const auto plan =
      plan_admission({blank(60s, "a@1"), blank(60s, "b@2"), blank(60s, "c@3")}, max_ttl);
  ASSERT_EQ(plan.admit.size(), 3U);
  for (const auto& one : plan.admit)
    EXPECT_EQ(one.begun_with, "a@1 b@2 c@3");
}

// One was let in, then who did it was gone: no majority votes, and the set is not new any more.
TEST(Admission, SetWhoseBeginningWasInterruptedGoesOn) {
  const auto one = began_with("a@1 b@2 c@3");
  const auto plan = plan_admission({one, blank(60s, "b@2"), blank(59s, "c@3")}, max_ttl);
  ASSERT_EQ(plan.admit.size(), 1U);
  EXPECT_EQ(plan.admit[0], (admission{1, grounds::all_new, "a@1 b@2 c@3"}));
  EXPECT_EQ(plan.again, 1s);
  EXPECT_FALSE(plan.counters_lost);
  // Also if that one was restarted since: it alone has granted nothing to anybody.
  const auto without = began_with("a@1 b@2 c@3", standing::restarted);
  EXPECT_EQ(plan_admission({without, blank(60s, "b@2"), blank(60s, "c@3")}, max_ttl).admit.size(),
            2U);
}

// It may have been let in, have voted, and have forgotten that.
TEST(Admission, NodeInAnotherWaitThanWhenTheSetBeganIsNotNew) {
  const auto one = began_with("a@1 b@2 c@3");
  for (const auto* other : {"b@22", "b@", "@2", "xb@2", "", " ", "b@2 c@3"}) {
    const auto plan = plan_admission({one, blank(1h, other), blank(1h, other)}, max_ttl);
    EXPECT_TRUE(plan.admit.empty()) << other;
    EXPECT_TRUE(plan.counters_lost) << other;
  }
}

TEST(Admission, SetIsNotNewWhileANodeIsAway) {
  EXPECT_TRUE(plan_admission({blank(1h), blank(1h), away}, max_ttl).admit.empty());
}

TEST(Admission, LostMajorityOfCountersIsForAPersonToDecide) {
  const auto plan = plan_admission({votes, blank(1h), restarted(1h)}, max_ttl);
  EXPECT_TRUE(plan.admit.empty());
  EXPECT_TRUE(plan.counters_lost);
  EXPECT_FALSE(plan.again);
}

}  // namespace holdfast::test
