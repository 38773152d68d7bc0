// Which changes of a set of nodes are safe: by cases, and by looking at every pair of majorities.
#include "core/set_change.hpp"

#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include "core/quorum_machine.hpp"

namespace holdfast::core {

namespace {

using part = changing_node::part;
using standing = changing_node::standing;

std::vector<changing_node> change(std::size_t stay, std::size_t leave, std::size_t join) {
  std::vector<changing_node> nodes(stay, {part::stays, standing::intact});
  nodes.insert(nodes.end(), leave, {part::leaves, standing::intact});
  nodes.insert(nodes.end(), join, {part::joins, standing::empty});
  return nodes;
}

std::size_t bits(std::uint32_t of) { return static_cast<std::size_t>(__builtin_popcount(of)); }

// Whether some majority of the old set and some majority of those that vote in the new one have no
// node in common. Nodes are bits: those that stay first, then those that leave.
bool can_miss(std::size_t stay, std::size_t leave, std::size_t join) {
  const auto old_majority = majority_of(stay + leave);
  const auto new_majority = majority_of(stay + join);
  const std::uint32_t voters = (1U << stay) - 1;
  for (std::uint32_t a = 0; a < 1U << (stay + leave); ++a) {
    if (bits(a) < old_majority) continue;
    for (std::uint32_t b = 0; b <= voters; ++b) {
      if (bits(b) >= new_majority && (a & b) == 0) return true;
    }
  }
  return false;
}

}  // namespace

TEST(SetChange, SafeIsWhatLeavesNoTwoMajoritiesApart) {
  for (std::size_t stay = 0; stay <= 7; ++stay) {
    for (std::size_t leave = 0; leave <= 4; ++leave) {
      for (std::size_t join = 0; join <= 4; ++join) {
        if (stay + leave == 0 || stay + join == 0) continue;
        const auto nodes = change(stay, leave, join);
        const bool safe = judge_change(nodes) == change_verdict::safe;
        if (safe) {
          EXPECT_FALSE(can_miss(stay, leave, join)) << stay << " " << leave << " " << join;
          EXPECT_GE(stay, majority_of(stay + join)) << "or nobody could let the others in";
        }
        // And no more is refused than has to be.
        const bool works = stay >= majority_of(stay + join);
        EXPECT_EQ(safe, works && !can_miss(stay, leave, join)) << stay << leave << join;
      }
    }
  }
}

TEST(SetChange, OneNodeMayBeReplacedAddedOrRemoved) {
  for (std::size_t size = 2; size <= 9; ++size) {
    EXPECT_EQ(judge_change(change(size - 1, 1, 0)), change_verdict::safe) << size;
    EXPECT_EQ(judge_change(change(size, 0, 1)), change_verdict::safe) << size;
    if (size == 2) continue;
    EXPECT_EQ(judge_change(change(size - 1, 1, 1)), change_verdict::safe) << size;
  }
  EXPECT_EQ(judge_change(change(3, 2, 2)), change_verdict::safe);
  EXPECT_EQ(judge_change(change(3, 2, 0)), change_verdict::too_much_at_once);
}

TEST(SetChange, NodesThatLeaveMayBeDeadOthersNot) {
  auto nodes = change(2, 1, 1);
  nodes[2].is = standing::unreachable;
  EXPECT_EQ(judge_change(nodes), change_verdict::safe);
  nodes[3].is = standing::unreachable;
  EXPECT_EQ(judge_change(nodes), change_verdict::newcomer_away);
  nodes[3].is = standing::foreign;
  EXPECT_EQ(judge_change(nodes), change_verdict::foreign_node);
  nodes[3].is = standing::empty;
  nodes[1].is = standing::unreachable;
  EXPECT_EQ(judge_change(nodes), change_verdict::too_few_closed);
}

TEST(SetChange, NodesThatWaitChangeOverWithTheOthers) {
  auto nodes = change(2, 1, 1);
  for (const auto lossy : {standing::waits, standing::joining, standing::empty}) {
    nodes[1].is = lossy;
    EXPECT_EQ(judge_change(nodes), change_verdict::safe);
  }
  auto five = change(4, 1, 1);
  five[2].is = standing::waits;
  five[3].is = standing::unreachable;
  EXPECT_EQ(judge_change(five), change_verdict::safe) << "three are left";
  five[2].is = standing::unreachable;
  EXPECT_EQ(judge_change(five), change_verdict::too_few_stay);
}

TEST(SetChange, EnoughChangeOverOnceAMajorityOfTheNewListHas) {
  auto nodes = change(2, 1, 1);
  EXPECT_TRUE(enough_change_over(nodes));
  nodes[1].is = standing::unreachable;
  EXPECT_FALSE(enough_change_over(nodes)) << "one that joins does not count, nor one that leaves";
  nodes[3].is = standing::joining;
  EXPECT_FALSE(enough_change_over(nodes));
  nodes[3].is = standing::changed;
  EXPECT_TRUE(enough_change_over(nodes)) << "it voted in the new set before";
}

// From one even list by two people: each has half of the old nodes, and a majority of its own list.
TEST(SetChange, MoveThatAnotherOneCrossesDoesNotBecomeComplete) {
  auto nodes = change(3, 1, 0);
  nodes[2].is = standing::foreign;
  nodes[3].is = standing::foreign;
  EXPECT_FALSE(enough_change_over(nodes));
  nodes[3].is = standing::intact;
  EXPECT_TRUE(enough_change_over(nodes));
}

TEST(SetChange, LocksOfTheListBeforeHaveToBeOverFirst) {
  auto nodes = change(3, 1, 0);
  EXPECT_EQ(judge_change(nodes), change_verdict::safe);
  nodes[0].is = standing::settling;
  EXPECT_EQ(judge_change(nodes), change_verdict::too_early);
}

TEST(SetChange, HalfwayIsGoneOnWith) {
  auto nodes = change(4, 1, 1);
  nodes[0].is = standing::changed;
  nodes[1].is = standing::changed;
  nodes[5].is = standing::joining;
  EXPECT_EQ(judge_change(nodes), change_verdict::safe);
}

}  // namespace holdfast::core
