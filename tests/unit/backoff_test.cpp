// Pauses that grow, are bounded, differ between waiters and can be replayed.
#include "core/backoff.hpp"

#include <algorithm>
#include <set>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

using namespace std::chrono_literals;

namespace holdfast::test {

namespace {

using core::backoff;
using core::duration;

constexpr backoff::bounds limits{2ms, 100ms};

std::vector<duration> pauses(backoff from, std::size_t count) {
  std::vector<duration> all;
  for (std::size_t i = 0; i < count; ++i)
    all.push_back(from.next());
  return all;
}

}  // namespace

RC_GTEST_PROP(Backoff, EachPauseIsBetweenHalfAndAllOfADoublingStep, (std::uint64_t seed)) {
  duration step = limits.first;
  for (const auto pause : pauses({limits, seed}, 20)) {
    RC_ASSERT(pause >= step / 2);
    RC_ASSERT(pause <= step);
    step = std::min<duration>(step * 2, limits.most);
  }
}

RC_GTEST_PROP(Backoff, SameSeedGivesTheSamePauses, (std::uint64_t seed)) {
  RC_ASSERT(pauses({limits, seed}, 20) == pauses({limits, seed}, 20));
}

RC_GTEST_PROP(Backoff, NeighbouringSeedsDoNotPauseInStep, (std::uint64_t seed)) {
  RC_ASSERT(pauses({limits, seed}, 10) != pauses({limits, seed + 1}, 10));
  RC_ASSERT(pauses({limits, seed}, 10) != pauses({limits, ~seed}, 10));
}

RC_GTEST_PROP(Backoff, AnyBoundsAreKept, (std::uint64_t seed)) {
  const duration first{*rc::gen::inRange(1, 1'000'000)};
  const duration most = first + duration{*rc::gen::inRange(0, 1'000'000'000)};
  for (const auto pause : pauses({{first, most}, seed}, 64)) {
    RC_ASSERT(pause >= first / 2);
    RC_ASSERT(pause <= most);
  }
}

TEST(Backoff, ResetStartsSmallAgainWithFreshJitter) {
  backoff pause{limits, 5};
  const auto first = pause.next();
  for (int i = 0; i < 10; ++i)
    static_cast<void>(pause.next());
  EXPECT_GE(pause.next(), limits.most / 2);
  pause.reset();
  const auto again = pause.next();
  EXPECT_LE(again, limits.first);
  EXPECT_NE(again, first) << "a crowd that was reset together must not come back together";
}

TEST(Backoff, NoPauseAtAllIsPossible) {
  backoff none{{0ns, 0ns}, 1};
  EXPECT_EQ(none.next(), 0ns);
  EXPECT_EQ(none.next(), 0ns);
}

TEST(Backoff, JitterSpreadsACrowdOverTheWholeRange) {
  std::set<std::int64_t> tenths;
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    const auto pause = backoff{{100ms, 100ms}, seed}.next();
    tenths.insert((pause - duration{50ms}) / duration{5ms});
  }
  EXPECT_GE(tenths.size(), 10U);
}

}  // namespace holdfast::test
