#include "stores/redis/cluster/route.hpp"

#include <gtest/gtest.h>

using namespace std::chrono_literals;

namespace holdfast::stores::redis {
namespace {

using verb = route::step::verb;
const core::time_point start{1h};

redirection said(std::string_view text) { return read_redirection(text, "asked").value(); }

TEST(Redirection, IsReadFromErrors) {
  const auto moved = said("MOVED 3999 127.0.0.1:6381");
  EXPECT_EQ(moved.what, redirection::kind::moved);
  EXPECT_EQ(moved.slot, 3999U);
  EXPECT_EQ(moved.to.text(), "127.0.0.1:6381");
  EXPECT_EQ(said("ASK 0 ::1:6381").what, redirection::kind::ask);
  EXPECT_EQ(said("ASK 0 ::1:6381").to.host, "::1");
  EXPECT_EQ(said("MOVED 1 :7000").to.host, "asked") << "an empty host is that of who says so";
  for (const auto* const text :
       {"TRYAGAIN Multiple keys request during rehashing of slot",
        "CLUSTERDOWN Hash slot not served", "LOADING Redis is loading the dataset in memory",
        "MASTERDOWN Link with MASTER is down"}) {
    EXPECT_EQ(said(text).what, redirection::kind::not_now) << text;
  }
}

TEST(Redirection, OtherErrorsAndNonsenseAreNone) {
  for (const auto* const text :
       {"ERR MOVED 1 a:1", "MOVED", "MOVED x a:1", "MOVED 16384 a:1", "MOVED 1 a", "MOVED 1 a:x",
        "MOVED 1 a:70000", "MOVEDON 1 a:1", "ASKING", "NOSCRIPT", "WRONGTYPE"}) {
    EXPECT_FALSE(read_redirection(text, "asked")) << text;
  }
}

TEST(Route, FollowsWhatNodesSay) {
  route way{start + 1s, 1};
  const auto moved = way.on_redirection(said("MOVED 1 a:1"), start);
  EXPECT_EQ(moved.what, verb::send);
  EXPECT_EQ(moved.to.host, "a");
  EXPECT_EQ(way.on_redirection(said("ASK 1 b:1"), start).what, verb::send_asking);
}

TEST(Route, PausesWhenNodesPointAtEachOther) {
  route way{start + 1s, 1};
  for (int i = 0; i < route::hops_max; ++i)
    ASSERT_EQ(way.on_redirection(said("MOVED 1 a:1"), start).what, verb::send);
  const auto then = way.on_redirection(said("MOVED 1 a:1"), start);
  EXPECT_EQ(then.what, verb::pause);
  EXPECT_GT(then.until, start);
  EXPECT_EQ(way.on_redirection(said("MOVED 1 a:1"), then.until).what, verb::send);
}

TEST(Route, WaitsForASlotThatNobodyServesUntilItsTimeIsUp) {
  route way{start + 1s, 1};
  auto now = start;
  for (auto next = way.on_redirection(said("TRYAGAIN"), now); next.what != verb::give_up;
       next = way.on_redirection(said("TRYAGAIN"), now)) {
    ASSERT_EQ(next.what, verb::pause);
    ASSERT_GT(next.until, now);
    ASSERT_LE(next.until, start + 1s);
    now = next.until;
  }
  EXPECT_GT(now, start + 800ms) << "not before";
}

TEST(Route, LooksAtTheMapAFewTimesWhenANodeIsGone) {
  route way{start + 1s, 1};
  for (int i = 0; i < route::looks_max; ++i)
    EXPECT_EQ(way.on_unreachable(start).what, verb::look_anew);
  EXPECT_EQ(way.on_unreachable(start).what, verb::give_up);
  route late{start, 1};
  EXPECT_EQ(late.on_unreachable(start).what, verb::give_up);
}

}  // namespace
}  // namespace holdfast::stores::redis
