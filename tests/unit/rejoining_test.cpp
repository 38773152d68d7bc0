// Letting nodes vote again, without any: what is asked when, and what is made of the answers.
#include "stores/redlock/rejoining.hpp"

#include <gtest/gtest.h>

#include "redlock_scripts.hpp"

using namespace std::chrono_literals;

namespace holdfast::stores::redlock {

namespace {

using redis::reply_kind;
using redis::reply_value;
using verb = rejoining::step::verb;

constexpr core::time_point start{1000s};
constexpr std::chrono::milliseconds wall{1'800'000'000'000};
constexpr auto clock_s = "1800000000";

reply_value text(std::string what) { return {reply_kind::text, 0, std::move(what), {}}; }

struct told {
  std::string standing;
  std::string wait{};
  long long left_ms = 0;
  std::vector<std::string> counters{};
  std::string moved{};
};

reply_value answer(const told& what) {
  reply_value all{reply_kind::array, 0, {}, {}};
  for (const auto& one :
       {what.standing, std::string{clock_s}, std::string{"0"}, what.moved, what.wait}) {
    all.items.push_back(text(one));
  }
  all.items.push_back({reply_kind::integer, what.left_ms, {}, {}});
  all.items.push_back(text(""));
  for (const auto& one : what.counters)
    all.items.push_back(text(one));
  return all;
}

reply_value admitted() { return {reply_kind::array, 0, {}, {{reply_kind::integer, 1, {}, {}}}}; }

class Rejoining : public testing::Test {
 protected:
  rejoining::step say(const std::vector<reply_value>& all, core::time_point now = start) {
    rejoining::answers said;
    for (const auto& one : all)
      said.push_back(one.type == reply_kind::nothing ? nullptr : &one);
    return op.on_answers(said, now, wall);
  }
  static bool reads_counters(const rejoining::step& step) {
    return step.what == verb::ask && step.asks[0]->which == &scripts::standing &&
           step.asks[0]->args[4] == "counters";
  }
  // What admit.lua is told for a node: its least value of all counters, then pairs.
  static std::vector<std::string> least_of(const rejoining::step& step, std::size_t node) {
    const auto& args = step.asks.at(node)->args;
    return {args.begin() + 5, args.end()};
  }

  const set_identity set{{"c-0", "c-1", "c-2"}, "n1,n2,n3", 1, 60s};
  int ids = 0;
  rejoining op{set, core::admission_rule{3}, [this] { return "id" + std::to_string(++ids); }};
};

const reply_value none{};

}  // namespace

TEST_F(Rejoining, EndsWhenNoNodeWaits) {
  ASSERT_EQ(op.start(start, wall).what, verb::ask);
  EXPECT_EQ(say({answer({"votes"}), none, answer({"foreign"})}).what, verb::done);
}

TEST_F(Rejoining, EveryLookKeepsUpTheWait) {
  const auto look = op.start(start, wall);
  for (const auto& one : look.asks) {
    ASSERT_TRUE(one);
    EXPECT_EQ(one->which, &scripts::standing);
    EXPECT_EQ(one->args[2], std::to_string(wall.count()));
    EXPECT_FALSE(one->args[3].empty());
  }
}

TEST_F(Rejoining, LooksAgainWhenTheWaitIsOver) {
  (void)op.start(start, wall);
  const auto next = say({answer({"votes"}), answer({"votes"}), answer({"blank", "r@1", 300})});
  EXPECT_EQ(next.what, verb::pause);
  EXPECT_EQ(next.until, start + 300ms);
  EXPECT_FALSE(next.lets_in);
}

TEST_F(Rejoining, NodeTakesTheHighestCountersOfIntactNodes) {
  (void)op.start(start, wall);
  const auto waits = answer({"restarted", "r@1", 0});
  const auto reads = say({answer({"votes"}), answer({"votes"}), waits});
  ASSERT_TRUE(reads_counters(reads));
  const auto admits = say({answer({"votes", "", 0, {"c:1", "7", "floor", "3"}}),
                           answer({"votes", "", 0, {"c:1", "9", "c:2", "4"}}),
                           answer({"restarted", "r@1", 0, {"c:1", "1000"}})});
  ASSERT_EQ(admits.what, verb::ask);
  EXPECT_FALSE(admits.asks[0] || admits.asks[1]);
  ASSERT_TRUE(admits.asks[2]);
  EXPECT_EQ(admits.asks[2]->which, &scripts::admit);
  EXPECT_EQ(admits.asks[2]->args[4], "r@1");
  EXPECT_EQ(least_of(admits, 2),
            (std::vector<std::string>{"0", "c:1", "9", "c:2", "4", "floor", "3"}))
      << "no clock, and nothing of nodes that forgot";
  EXPECT_EQ(say({none, none, admitted()}).what, verb::pause) << "and looks whether it votes";
}

TEST_F(Rejoining, WithoutThemItTakesWhatIsLeftAndClocksOnTheSecondLook) {
  const auto waits = answer({"restarted", "r@1", 0, {"c:1", "5"}});
  const auto votes = answer({"votes", "", 0, {"c:1", "3"}});
  (void)op.start(start, wall);
  ASSERT_TRUE(reads_counters(say({votes, none, waits})));
  const auto pause = say({votes, none, waits});
  ASSERT_EQ(pause.what, verb::pause) << "one look is not enough";
  EXPECT_TRUE(pause.lets_in);
  EXPECT_EQ(pause.until, start + 1s);
  (void)op.start(start + 1s, wall);
  ASSERT_TRUE(reads_counters(say({votes, none, waits}, start + 1s)));
  const auto admits = say({votes, none, waits}, start + 1s);
  ASSERT_EQ(admits.what, verb::ask);
  ASSERT_TRUE(admits.asks[2]);
  EXPECT_EQ(least_of(admits, 2), (std::vector<std::string>{"1800000001000000", "c:1", "5"}));
}

TEST_F(Rejoining, NodeThatBeganAnotherWaitMeanwhileIsNotLetIn) {
  (void)op.start(start, wall);
  ASSERT_TRUE(
      reads_counters(say({answer({"votes"}), answer({"votes"}), answer({"blank", "r@1", 0})})));
  const auto next = say({answer({"votes"}), answer({"votes"}), answer({"blank", "r@2", 60'000})});
  ASSERT_EQ(next.what, verb::ask);
  EXPECT_FALSE(next.asks[0] || next.asks[1] || next.asks[2]);
}

TEST_F(Rejoining, LooksOfDifferentWaitsDoNotAddUp) {
  const auto over = answer({"restarted", "r@1", 0});
  const auto votes = answer({"votes"});
  (void)op.start(start, wall);
  (void)say({votes, none, over});
  ASSERT_EQ(say({votes, none, over}).what, verb::pause);
  // Started again: it waits anew.
  (void)op.start(start + 1s, wall);
  ASSERT_EQ(say({votes, none, answer({"restarted", "r@2", 60'000})}, start + 1s).what, verb::pause);
  (void)op.start(start + 61s, wall);
  const auto later = answer({"restarted", "r@2", 0});
  ASSERT_TRUE(reads_counters(say({votes, none, later}, start + 61s)));
  EXPECT_EQ(say({votes, none, later}, start + 61s).what, verb::pause) << "this is the first look";
}

TEST_F(Rejoining, WhatMakesNoSenseIsNoAnswer) {
  EXPECT_EQ(read_standing(text("?"), 1).report.is, core::node_report::standing::unreachable);
  EXPECT_EQ(read_standing(answer({"elsewhere"}), 1).report.is,
            core::node_report::standing::unreachable);
  EXPECT_TRUE(read_admitted(text("?")));
}

}  // namespace holdfast::stores::redlock
