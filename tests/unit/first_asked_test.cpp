#include "core/first_asked.hpp"

#include <gtest/gtest.h>

using namespace std::chrono_literals;

namespace holdfast::test {

namespace {

using core::ask_first;
using core::node_habit;
using list = std::vector<std::size_t>;

constexpr core::time_point now{1h};
constexpr auto alone = core::rivals::none_seen;

std::vector<node_habit> healthy(std::size_t count) {
  return std::vector<node_habit>(count, node_habit{200us, now - 10ms, false, false});
}

}  // namespace

TEST(FirstAsked, IsAMajorityFromTheSameNodeOnForEverybody) {
  EXPECT_EQ(ask_first(healthy(5), 0, alone, now).nodes, (list{0, 1, 2}));
  EXPECT_EQ(ask_first(healthy(5), 4, alone, now).nodes, (list{4, 0, 1}));
  EXPECT_EQ(ask_first(healthy(4), 1, alone, now).nodes, (list{1, 2, 3}));
  EXPECT_EQ(ask_first(healthy(3), 2, alone, now).nodes, (list{2, 0}));
}

TEST(FirstAsked, IsEverybodyIfSomebodyWasNotAskedLately) {
  auto nodes = healthy(5);
  nodes[3].asked_at = now - core::asked_all_within - 1ns;
  EXPECT_TRUE(ask_first(nodes, 0, alone, now).nodes.empty());
  EXPECT_EQ(ask_first(nodes, 0, alone, now).patience, core::duration::max()) << "nobody is late";
  EXPECT_TRUE(ask_first(std::vector<node_habit>(5), 0, alone, now).nodes.empty()) << "never asked";
}

TEST(FirstAsked, LeavesOutWhoIsDownSilentOrRefuses) {
  auto nodes = healthy(5);
  nodes[1].doubtful = true;
  EXPECT_EQ(ask_first(nodes, 0, alone, now).nodes, (list{0, 2, 3}));
  nodes[2].doubtful = true;
  EXPECT_EQ(ask_first(nodes, 0, alone, now).nodes, (list{0, 3, 4}));
  nodes[3].doubtful = true;
  EXPECT_TRUE(ask_first(nodes, 0, alone, now).nodes.empty())
      << "no majority without doubt: ask all";
}

TEST(FirstAsked, LeavesOutWhoIsMuchSlowerThanAMajority) {
  auto nodes = healthy(5);
  nodes[0].typical = 8ms;
  nodes[1].typical = 300us;
  EXPECT_EQ(ask_first(nodes, 0, alone, now).nodes, (list{1, 2, 3}));
  for (auto& one : nodes)
    one.typical = 8ms;
  EXPECT_EQ(ask_first(nodes, 0, alone, now).nodes, (list{0, 1, 2})) << "slow alike";
}

TEST(FirstAsked, PrefersThoseThatWereNotLateButTakesThemIfItMust) {
  auto nodes = healthy(5);
  nodes[1].late = true;
  EXPECT_EQ(ask_first(nodes, 0, alone, now).nodes, (list{0, 2, 3}));
  nodes[2].late = true;
  nodes[3].late = true;
  EXPECT_EQ(ask_first(nodes, 0, alone, now).nodes, (list{0, 4, 1}));
}

TEST(FirstAsked, KeepsToOneOrderWhereThereAreRivals) {
  auto nodes = healthy(5);
  nodes[0].late = true;
  nodes[1].typical = 8ms;
  nodes[4].asked_at = now - 1h;
  EXPECT_EQ(ask_first(nodes, 0, core::rivals::seen, now).nodes, (list{0, 1, 2}));
  nodes[2].doubtful = true;
  EXPECT_EQ(ask_first(nodes, 0, core::rivals::seen, now).nodes, (list{0, 1, 3}));
  nodes[2].asked_at = now - 1h;
  EXPECT_TRUE(ask_first(nodes, 0, core::rivals::seen, now).nodes.empty()) << "it may be back";
}

TEST(FirstAsked, WaitsLongerForNodesThatAreFarAway) {
  auto nodes = healthy(5);
  const auto near = ask_first(nodes, 0, alone, now).patience;
  EXPECT_GT(near, 200us);
  EXPECT_LT(near, 2ms);
  for (auto& one : nodes)
    one.typical = 20ms;
  EXPECT_GT(ask_first(nodes, 0, alone, now).patience, 40ms);
}

TEST(FirstAsked, IsEverybodyWhereAMajorityIsEverybody) {
  EXPECT_TRUE(ask_first(healthy(1), 0, alone, now).nodes.empty());
  EXPECT_TRUE(ask_first(healthy(2), 0, alone, now).nodes.empty());
}

}  // namespace holdfast::test
