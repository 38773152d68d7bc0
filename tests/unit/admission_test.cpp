// Nodes that have waited: from whom they take their counters.
#include "core/admission.hpp"

#include <vector>

#include <gtest/gtest.h>

using namespace std::chrono_literals;

namespace holdfast::test {

namespace {

using core::admission;
using core::counter_source;
using core::node_report;
using standing = node_report::standing;
using move = node_report::move;
using nodes = std::vector<node_report>;

constexpr core::duration max_ttl = 60s;
constexpr core::time_point start{1000s};
const node_report votes{standing::votes};
const node_report blank{standing::blank};
const node_report restarted{standing::restarted};
const node_report away{standing::unreachable};
const node_report foreign{standing::foreign};
const node_report left{standing::left};
const node_report moved{standing::votes, move::begun};
const node_report complete{standing::votes, move::complete};

// What a second look finds, a second after the first, that found the same.
counter_source looked_twice(const nodes& all) {
  admission judge{core::admission_rule{all.size()}};
  static_cast<void>(judge.judge(all, start));
  return judge.judge(all, start + 1s);
}
counter_source looked_once(const nodes& all) {
  return admission{core::admission_rule{all.size()}}.judge(all, start);
}

}  // namespace

TEST(Admission, MajorityOfIntactNodesKnowsTheLastToken) {
  EXPECT_EQ(looked_once({votes, votes, restarted}), counter_source::intact);
  EXPECT_EQ(looked_once({votes, votes, votes, away, blank}), counter_source::intact);
}

TEST(Admission, FewerThanThatDoNot) {
  EXPECT_EQ(looked_once({votes, away, restarted}), counter_source::nobody);
  EXPECT_EQ(looked_once({votes, votes, away, away, blank}), counter_source::nobody);
}

TEST(Admission, TwoLooksThatFindTooFewAskEveryNodeThatAnswers) {
  for (const auto& all : {nodes{votes, restarted, restarted}, nodes{votes, away, restarted},
                          nodes{blank, blank, blank}, nodes{restarted, away, restarted},
                          nodes{away, away, votes, blank, restarted}}) {
    EXPECT_EQ(looked_once(all), counter_source::nobody);
    EXPECT_EQ(looked_twice(all), counter_source::all_there);
  }
}

TEST(Admission, SecondLookIsASecondLater) {
  admission judge{core::admission_rule{3}};
  const nodes all{votes, restarted, restarted};
  EXPECT_EQ(judge.judge(all, start), counter_source::nobody);
  EXPECT_EQ(judge.judge(all, start + 999ms), counter_source::nobody);
  EXPECT_EQ(judge.judge(all, start + 1s), counter_source::all_there);
}

// An intact node that did not answer for a moment: the promise rests on no clock.
TEST(Admission, LookThatFindsEnoughBeginsAnew) {
  admission judge{core::admission_rule{3}};
  EXPECT_EQ(judge.judge(nodes{votes, away, restarted}, start), counter_source::nobody);
  EXPECT_EQ(judge.judge(nodes{votes, votes, restarted}, start + 1s), counter_source::intact);
  EXPECT_EQ(judge.judge(nodes{votes, away, restarted}, start + 2s), counter_source::nobody);
}

TEST(Admission, MinorityLetsNobodyIn) {
  EXPECT_EQ(looked_twice({away, away, restarted}), counter_source::nobody);
  EXPECT_EQ(looked_twice({votes, away, away, away, blank}), counter_source::nobody);
  EXPECT_EQ(looked_twice({foreign, foreign, blank}), counter_source::nobody);
}

TEST(Admission, HalfDoneMoveRestsOnNoClock) {
  EXPECT_EQ(looked_twice({moved, restarted, blank}), counter_source::nobody);
  EXPECT_EQ(looked_twice({votes, foreign, restarted, blank, away}), counter_source::nobody);
  EXPECT_EQ(looked_twice({left, restarted, blank}), counter_source::nobody);
  // A node that lost its vote does not vouch for the move.
  const node_report lost_it{standing::restarted, move::complete};
  EXPECT_EQ(looked_twice({lost_it, foreign, blank}), counter_source::nobody);
}

TEST(Admission, FinishedMoveDoes) {
  EXPECT_EQ(looked_twice({complete, foreign, blank}), counter_source::all_there);
  const node_report lost_it{standing::restarted, move::complete};
  EXPECT_EQ(looked_twice({lost_it, lost_it, blank}), counter_source::all_there)
      << "nobody says that it is not finished";
}

// The set was complete once, and nodes begin to leave it.
TEST(Admission, MoveToALaterListIsHalfDoneWhateverThisOneSays) {
  auto later = foreign;
  later.later = true;
  EXPECT_EQ(looked_twice({complete, later, blank}), counter_source::nobody);
}

TEST(Admission, LossAfterInitFindsItsWayAboveIt) {
  const auto at = [](core::duration clock) {
    return node_report{standing::restarted, move::none, false, {}, {}, clock};
  };
  // One node is 30 s ahead of the others, and dead after `init`.
  const auto init = core::least_counter_at_once(nodes{at(100s), at(70s), at(70s)}, max_ttl);
  const auto looks = max_ttl + 1s;  // the wait, and the second look
  EXPECT_GT(core::least_counter(nodes{at(70s + looks), at(70s + looks), away}, max_ttl), init);
}

// Two nodes of the new list changed over, and the newcomer has waited since before that.
TEST(Admission, NodesThatChangedOverTellNobodyBeforeTheMoveIsFinished) {
  EXPECT_EQ(looked_twice({moved, moved, blank}), counter_source::nobody);
  EXPECT_EQ(looked_once({complete, complete, blank}), counter_source::intact);
}

TEST(Admission, LeastCounterIsAboveWhatNodesBelievedThatForgot) {
  const auto at = [](std::chrono::seconds clock) {
    return node_report{standing::restarted, move::none, false, {}, {}, clock};
  };
  const nodes all{at(1000s), at(1020s), away};
  const auto us = [](std::chrono::seconds value) {
    return static_cast<std::uint64_t>(std::chrono::microseconds{value}.count());
  };
  EXPECT_EQ(core::least_counter(all, 60s), us(1021s)) << "a wait old: nothing jumps";
  EXPECT_EQ(core::least_counter(all, 10min), us(1021s));
  EXPECT_EQ(core::least_counter(all, 1s), us(1020s + 59s + 1s));
  EXPECT_EQ(core::least_counter_at_once(all, 60s), us(1020s + 31s));
  EXPECT_EQ(core::least_counter_at_once(all, 1s), us(1020s + 60s)) << "or below what is above";
}

}  // namespace holdfast::test
