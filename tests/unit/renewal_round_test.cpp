// Renewal on N nodes: who counts, who is repaired, when it is lost.
#include "core/renewal_round.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

namespace holdfast::test {

namespace {

using core::renewal_round;
using outcome = renewal_round::outcome;
using said = renewal_round::said;
using list = std::vector<std::size_t>;

}  // namespace

TEST(RenewalRound, MajorityOfExtendedCounts) {
  renewal_round r{5};
  r.on_answer(0, said::extended);
  r.on_answer(1, said::extended);
  EXPECT_EQ(r.result(), outcome::undecided);
  r.on_answer(4, said::extended);
  EXPECT_EQ(r.result(), outcome::renewed);
  EXPECT_TRUE(r.to_repair().empty());
}

TEST(RenewalRound, NodeThatLostTheKeyIsRepairedOnlyOnceTheMajorityIsSure) {
  renewal_round r{3};
  r.on_answer(0, said::gone);
  r.on_answer(1, said::extended);
  EXPECT_EQ(r.result(), outcome::undecided) << "a node to be repaired does not count";
  EXPECT_TRUE(r.to_repair().empty());
  r.on_answer(2, said::extended);
  EXPECT_EQ(r.result(), outcome::renewed);
  EXPECT_EQ(r.to_repair(), list{0});
}

TEST(RenewalRound, KeyOfAnotherIsNeverRepaired) {
  renewal_round r{3};
  r.on_answer(0, said::taken);
  r.on_answer(1, said::extended);
  r.on_answer(2, said::extended);
  EXPECT_EQ(r.result(), outcome::renewed);
  EXPECT_TRUE(r.to_repair().empty());
}

TEST(RenewalRound, LostOnlyWhenNoMajorityCanBeLeft) {
  renewal_round r{5};
  r.on_answer(0, said::gone);
  r.on_answer(1, said::gone);
  EXPECT_EQ(r.result(), outcome::undecided);
  r.on_answer(2, said::taken);
  EXPECT_EQ(r.result(), outcome::lost);
  EXPECT_EQ(r.why(), loss::deleted);
  EXPECT_TRUE(r.to_repair().empty());
}

TEST(RenewalRound, SilenceIsNotLoss) {
  renewal_round r{3};
  r.on_answer(0, said::gone);
  r.on_silence(1);
  r.on_silence(2);
  EXPECT_EQ(r.result(), outcome::failed);
  EXPECT_EQ(r.why(), loss::none);
  r.on_answer(1, said::extended);
  r.on_answer(2, said::extended);
  EXPECT_EQ(r.result(), outcome::renewed) << "a late answer counts";
}

RC_GTEST_PROP(RenewalRoundProperties, OnlyExtensionsCount, ()) {
  const auto nodes = *rc::gen::inRange<std::size_t>(1, 10);
  renewal_round r{nodes};
  std::size_t extended = 0;
  std::size_t lost = 0;
  for (std::size_t i = 0; i < nodes; ++i) {
    const auto what = *rc::gen::element(said::extended, said::gone, said::taken, said::failed);
    r.on_answer(i, what);
    extended += what == said::extended ? 1 : 0;
    lost += what == said::gone || what == said::taken ? 1 : 0;
  }
  const auto majority = core::majority_of(nodes);
  RC_ASSERT((r.result() == outcome::renewed) == (extended >= majority));
  RC_ASSERT((r.result() == outcome::lost) == (nodes - lost < majority));
  RC_ASSERT(r.result() != outcome::undecided);
  RC_ASSERT(r.to_repair().empty() || extended >= majority);
}

}  // namespace holdfast::test
