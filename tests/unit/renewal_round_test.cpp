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
constexpr fencing_token lease{7};

}  // namespace

TEST(RenewalRound, MajorityOfExtendedCounts) {
  renewal_round r{5, lease};
  r.on_extended(0, lease);
  r.on_extended(1, lease);
  EXPECT_EQ(r.result(), outcome::undecided);
  r.on_extended(4, lease);
  EXPECT_EQ(r.result(), outcome::renewed);
  EXPECT_TRUE(r.to_repair().empty());
}

TEST(RenewalRound, NodeThatLostTheKeyIsRepairedOnlyOnceTheMajorityIsSure) {
  renewal_round r{3, lease};
  r.on_answer(0, said::gone);
  r.on_extended(1, lease);
  EXPECT_EQ(r.result(), outcome::undecided) << "a node to be repaired does not count";
  EXPECT_TRUE(r.to_repair().empty());
  r.on_extended(2, lease);
  EXPECT_EQ(r.result(), outcome::renewed);
  EXPECT_EQ(r.to_repair(), list{0});
}

TEST(RenewalRound, KeyOfAnotherIsNeverRepaired) {
  renewal_round r{3, lease};
  r.on_answer(0, said::taken);
  r.on_extended(1, lease);
  r.on_extended(2, lease);
  EXPECT_EQ(r.result(), outcome::renewed);
  EXPECT_TRUE(r.to_repair().empty());
}

TEST(RenewalRound, LostOnlyWhenNoMajorityCanBeLeft) {
  renewal_round r{5, lease};
  r.on_answer(0, said::gone);
  r.on_answer(1, said::gone);
  EXPECT_EQ(r.result(), outcome::undecided);
  r.on_answer(2, said::taken);
  EXPECT_EQ(r.result(), outcome::lost);
  EXPECT_EQ(r.why(), loss::deleted);
  EXPECT_TRUE(r.to_repair().empty());
}

TEST(RenewalRound, SilenceIsNotLoss) {
  renewal_round r{3, lease};
  r.on_answer(0, said::gone);
  r.on_silence(1);
  r.on_silence(2);
  EXPECT_EQ(r.result(), outcome::failed);
  EXPECT_EQ(r.why(), loss::none);
  r.on_extended(1, lease);
  r.on_extended(2, lease);
  EXPECT_EQ(r.result(), outcome::renewed) << "a late answer counts";
}

// The acquire was held up, and came fresh to a node where another attempt had come and gone.
TEST(RenewalRound, HigherTokenDoesNotCountAndIsNoBasisForRepairs) {
  renewal_round r{5, lease};
  r.on_extended(0, lease);
  r.on_extended(1, lease);
  r.on_extended(2, fencing_token{lease.value() + 3});
  r.on_answer(3, said::gone);
  EXPECT_EQ(r.result(), outcome::undecided);
  EXPECT_TRUE(r.to_repair().empty());
  r.on_answer(4, said::taken);
  EXPECT_EQ(r.result(), outcome::lost);
}

TEST(RenewalRound, LowerTokenCountsAndTheHighestIsTheBest) {
  renewal_round r{3, lease};
  EXPECT_FALSE(r.best());
  r.on_extended(0, fencing_token{lease.value() - 2});
  r.on_extended(1, lease);
  r.on_extended(2, fencing_token{lease.value() + 1});
  EXPECT_EQ(r.result(), outcome::renewed);
  EXPECT_EQ(r.best(), 1U);
  EXPECT_EQ(r.to_repair(), list{2});
}

// Of a lease that is adopted, the token is what most nodes say. Nothing lower may make up a
// majority for a token that is on a minority.
TEST(RenewalRound, UnknownTokenIsWhatMostSayAndOnlyThatCounts) {
  renewal_round most{5, fencing_token{}};
  most.on_extended(0, fencing_token{9});
  most.on_extended(1, lease);
  most.on_extended(2, lease);
  EXPECT_EQ(most.result(), outcome::undecided) << "9 is above it";
  most.on_extended(3, lease);
  EXPECT_EQ(most.result(), outcome::renewed);
  EXPECT_EQ(most.best(), 1U);
  renewal_round interrupted{5, fencing_token{}};
  interrupted.on_extended(0, lease);
  interrupted.on_extended(1, fencing_token{9});
  interrupted.on_extended(2, fencing_token{9});
  interrupted.on_answer(3, said::gone);
  interrupted.on_answer(4, said::gone);
  EXPECT_EQ(interrupted.result(), outcome::lost);
  renewal_round draw{3, fencing_token{}};
  draw.on_extended(0, fencing_token{9});
  draw.on_extended(1, lease);
  draw.on_answer(2, said::gone);
  EXPECT_EQ(draw.result(), outcome::lost) << "the lower one, which is not on a majority";
}

RC_GTEST_PROP(RenewalRoundProperties, OnlyExtensionsWithItsTokenCount, ()) {
  enum class answer { extended, lower, higher, gone, taken, failed };
  const auto nodes = *rc::gen::inRange<std::size_t>(1, 10);
  renewal_round r{nodes, lease};
  std::size_t extended = 0;
  std::size_t lost = 0;
  for (std::size_t i = 0; i < nodes; ++i) {
    const auto what = *rc::gen::element(answer::extended, answer::lower, answer::higher,
                                        answer::gone, answer::taken, answer::failed);
    switch (what) {
      case answer::extended:
      case answer::lower:
      case answer::higher: {
        const auto shift = *rc::gen::inRange<std::uint64_t>(1, 5);
        r.on_extended(i, what == answer::extended ? lease
                         : what == answer::lower  ? fencing_token{lease.value() - shift}
                                                  : fencing_token{lease.value() + shift});
        break;
      }
      case answer::gone:
        r.on_answer(i, said::gone);
        break;
      case answer::taken:
        r.on_answer(i, said::taken);
        break;
      case answer::failed:
        r.on_answer(i, said::failed);
        break;
    }
    extended += what == answer::extended || what == answer::lower ? 1 : 0;
    lost += what == answer::gone || what == answer::taken || what == answer::higher ? 1 : 0;
  }
  const auto majority = core::majority_of(nodes);
  RC_ASSERT((r.result() == outcome::renewed) == (extended >= majority));
  RC_ASSERT((r.result() == outcome::lost) == (nodes - lost < majority));
  RC_ASSERT(r.result() != outcome::undecided);
  RC_ASSERT(r.to_repair().empty() || extended >= majority);
}

}  // namespace holdfast::test
