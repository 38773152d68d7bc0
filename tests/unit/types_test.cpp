// Owner ids, and time that does not overflow.
#include "core/types.hpp"

#include <set>
#include <string>

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "runtime/random.hpp"

using namespace std::chrono_literals;

namespace holdfast::test {

using core::after;
using core::duration;
using core::never;
using core::owner_id;
using core::time_point;

RC_GTEST_PROP(OwnerId, PrintedAndParsedItIsTheSame, (std::uint64_t high, std::uint64_t low)) {
  const auto id = owner_id::from_bits(high, low);
  RC_ASSERT(id.text().size() == owner_id::digits);
  const auto back = owner_id::parse(id.text());
  RC_ASSERT(back.has_value());
  RC_ASSERT(*back == id);
  const std::string text{id.text()};
  RC_ASSERT(std::stoull(text.substr(0, 16), nullptr, 16) == high);
  RC_ASSERT(std::stoull(text.substr(16), nullptr, 16) == low);
}

TEST(OwnerId, IsPrintedHighBitsFirst) {
  EXPECT_EQ(owner_id::from_bits(0x0123456789abcdef, 1).text(), "0123456789abcdef0000000000000001");
}

TEST(OwnerId, OnlyThirtyTwoLowerCaseHexDigitsAreParsed) {
  const std::string good(32, 'a');
  EXPECT_TRUE(owner_id::parse(good));
  EXPECT_FALSE(owner_id::parse(""));
  EXPECT_FALSE(owner_id::parse(good.substr(1)));
  EXPECT_FALSE(owner_id::parse(good + "a"));
  for (const char bad : {'A', 'g', 'G', '-', ' ', '\0', '/', ':', '`'}) {
    for (const std::size_t at : {0, 15, 31}) {
      auto text = good;
      text[at] = bad;
      EXPECT_FALSE(owner_id::parse(text)) << text;
    }
  }
}

RC_GTEST_PROP(OwnerId, DifferentBitsAreDifferentOwnersInTheOrderOfTheirNumbers,
              (std::uint64_t a, std::uint64_t b)) {
  RC_ASSERT((owner_id::from_bits(a, 0) < owner_id::from_bits(b, 0)) == (a < b));
  RC_ASSERT((owner_id::from_bits(0, a) < owner_id::from_bits(0, b)) == (a < b));
  RC_ASSERT((owner_id::from_bits(0, a) == owner_id::from_bits(0, b)) == (a == b));
}

TEST(OwnerId, FreshOnesDiffer) {
  std::set<owner_id> seen;
  for (int i = 0; i < 1000; ++i)
    seen.insert(runtime::fresh_owner());
  EXPECT_EQ(seen.size(), 1000U);
}

TEST(After, AddsWhatFits) {
  constexpr time_point now{1h};
  EXPECT_EQ(after(now, 1ns), now + 1ns);
  EXPECT_EQ(after(now, 1h), now + 1h);
}

TEST(After, ZeroOrNegativeWaitIsNow) {
  constexpr time_point now{1h};
  EXPECT_EQ(after(now, 0ns), now);
  EXPECT_EQ(after(now, -1ns), now);
  EXPECT_EQ(after(now, duration::min()), now);
}

RC_GTEST_PROP(After, NeverWrapsAround, ()) {
  const time_point now{duration{*rc::gen::inRange<std::int64_t>(0, INT64_MAX)}};
  const duration wait{*rc::gen::arbitrary<std::int64_t>()};
  const auto then = after(now, wait);
  RC_ASSERT(then >= now);
  RC_ASSERT(after(now, duration::max()) == never);
  RC_ASSERT(after(never, wait) == never);
}

}  // namespace holdfast::test
