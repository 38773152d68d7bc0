// Fencing tokens, and the gate that makes them protect something.
#include <algorithm>
#include <array>
#include <atomic>
#include <latch>
#include <sstream>
#include <stdexcept>
#include <thread>
#include <unordered_set>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <holdfast/fence.hpp>
#include <holdfast/token.hpp>

namespace holdfast::test {

TEST(FencingToken, IsWrittenToStreamsInDecimal) {
  std::ostringstream text;
  text << std::hex << fencing_token{1731936000000001};
  EXPECT_EQ(text.str(), "1731936000000001");
}

TEST(FencingToken, ComparesAndPrintsAsItsNumber) {
  constexpr std::uint64_t largest = (std::uint64_t{1} << 53) - 1;
  EXPECT_LT(fencing_token{1}, fencing_token{2});
  EXPECT_EQ(fencing_token{5}, fencing_token{5});
  EXPECT_EQ(fencing_token{}.value(), 0U);
  EXPECT_EQ(to_string(fencing_token{largest}), "9007199254740991");
}

TEST(FencingToken, CanBeAKey) {
  std::unordered_set<fencing_token> seen{fencing_token{1}, fencing_token{2}, fencing_token{1}};
  EXPECT_EQ(seen.size(), 2U);
  EXPECT_TRUE(seen.contains(fencing_token{2}));
}

TEST(FenceGate, HolderIsAcceptedAgainUntilANewerOneIsSeen) {
  fence::gate gate;
  EXPECT_TRUE(gate.accept(fencing_token{33}));
  EXPECT_TRUE(gate.accept(fencing_token{33}));
  EXPECT_TRUE(gate.accept(fencing_token{34}));
  EXPECT_FALSE(gate.accept(fencing_token{33}));
  EXPECT_EQ(gate.highest(), fencing_token{34});
}

TEST(FenceGate, GoesOnWhereAnEarlierGateEnded) {
  fence::gate gate{fencing_token{100}};
  EXPECT_EQ(gate.highest(), fencing_token{100});
  EXPECT_FALSE(gate.accept(fencing_token{99}));
  EXPECT_TRUE(gate.accept(fencing_token{100}));
}

TEST(FenceGate, ToldBeforeTheFirstReadTurnsTheOldHolderAway) {
  fence::gate gate;
  int row = 0;
  ASSERT_TRUE(gate.accept(fencing_token{1}));  // the old holder reads 0, then is paused
  ASSERT_TRUE(gate.accept(fencing_token{2}));  // the new one reads 0 as well
  EXPECT_FALSE(gate.run(fencing_token{1}, [&] { row = 10; }));
  EXPECT_TRUE(gate.run(fencing_token{2}, [&] { row += 1; }));
  EXPECT_EQ(row, 1);
}

TEST(FenceGate, WritesOnlyForATokenThatWasAcceptedBefore) {
  fence::gate gate;
  bool written = false;
  const auto write = [&] { written = true; };
  EXPECT_FALSE(gate.run(fencing_token{7}, write)) << "it has not been shown before the first read";
  ASSERT_TRUE(gate.accept(fencing_token{7}));
  EXPECT_FALSE(gate.run(fencing_token{8}, write));
  EXPECT_FALSE(written);
  EXPECT_TRUE(gate.run(fencing_token{7}, write));
  EXPECT_TRUE(written);
}

TEST(FenceGate, LetsNobodyInWithoutAToken) {
  fence::gate gate;
  EXPECT_FALSE(gate.accept(fencing_token{}));
  EXPECT_FALSE(gate.run(fencing_token{}, [] { ADD_FAILURE() << "nobody was accepted"; }));
}

TEST(FenceGate, AWriteThatThrowsLeavesTheGateOpen) {
  fence::gate gate;
  ASSERT_TRUE(gate.accept(fencing_token{1}));
  const auto fail = [] { throw std::runtime_error{"disk full"}; };
  EXPECT_THROW((void)gate.run(fencing_token{1}, fail), std::runtime_error);
  EXPECT_TRUE(gate.accept(fencing_token{2}));
}

// What a check before the write cannot do: the check is over when the next holder comes.
TEST(FenceGate, TheNextHolderIsLetInWhenTheWriteIsOver) {
  fence::gate gate;
  ASSERT_TRUE(gate.accept(fencing_token{1}));
  std::atomic<bool> over{false};
  std::latch writing{1};
  std::thread old_holder{[&] {
    (void)gate.run(fencing_token{1}, [&] {
      writing.count_down();
      std::this_thread::yield();
      over = true;
    });
  }};
  writing.wait();
  EXPECT_TRUE(gate.accept(fencing_token{2}));
  EXPECT_TRUE(over) << "the new holder would read while the old one writes";
  old_holder.join();
}

RC_GTEST_PROP(FenceGate, AcceptsATokenExactlyIfNoHigherOneWasSeen,
              (std::vector<std::uint16_t> tokens)) {
  fence::gate gate;
  std::uint64_t highest = 0;
  std::uint64_t last_accepted = 0;
  for (const std::uint64_t token : tokens) {
    const bool accepted = gate.accept(fencing_token{token});
    RC_ASSERT(accepted == (token >= highest && token != 0));
    highest = std::max(highest, token);
    RC_ASSERT(gate.highest() == fencing_token{highest});
    if (!accepted) continue;
    RC_ASSERT(token >= last_accepted);
    last_accepted = token;
  }
}

TEST(FenceGate, ThreadsNeverGetALowerTokenThroughAfterAHigherOne) {
  constexpr std::uint64_t threads = 4;
  constexpr std::uint64_t tokens = 20'000;
  fence::gate gate;
  std::latch all_here{threads};
  std::vector<std::thread> crowd;
  std::array<std::uint64_t, threads> mistakes{};
  for (std::uint64_t t = 0; t < threads; ++t) {
    crowd.emplace_back([&, t] {
      all_here.arrive_and_wait();
      for (std::uint64_t n = 1; n <= tokens; ++n) {
        const fencing_token mine{n * threads + t};
        const auto before = gate.highest();
        const bool accepted = gate.accept(mine);
        const auto after = gate.highest();
        const bool wrong = accepted ? mine < before || after < mine : after <= mine;
        mistakes.at(t) += wrong ? 1 : 0;
      }
    });
  }
  for (auto& one : crowd)
    one.join();
  EXPECT_EQ(mistakes, (std::array<std::uint64_t, threads>{}));
  EXPECT_EQ(gate.highest(), fencing_token{tokens * threads + threads - 1});
}

}  // namespace holdfast::test
