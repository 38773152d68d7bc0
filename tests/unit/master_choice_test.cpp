// Whom to believe: Sentinels that differ, servers that all say they are the master.
#include "core/master_choice.hpp"

#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

namespace holdfast::test {

namespace {

using core::find_master;
using core::replication_word;
using core::sentinel_views;
using core::sentinel_word;
using core::server_address;
using verdict = core::master_found::verdict;
using said = std::vector<std::optional<sentinel_word>>;
using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""s;
using servers = std::vector<std::optional<replication_word>>;

constexpr core::time_point t0{100s};
const server_address a{"10.0.0.1", 6379};
const server_address b{"10.0.0.2", 6379};
const server_address a_by_name{"a.example", 6379};

}  // namespace

TEST(SentinelViews, NobodyIsBelievedBeforeASentinelSpoke) {
  sentinel_views views{3};
  EXPECT_EQ(views.hear(said{std::nullopt, std::nullopt, std::nullopt}, t0), std::nullopt);
  EXPECT_EQ(views.master(), std::nullopt);
}

TEST(SentinelViews, NewestEpochWinsOverAMajorityThatIsBehind) {
  sentinel_views views{3};
  EXPECT_EQ(views.hear(said{sentinel_word{a, 4}, sentinel_word{b, 5}, sentinel_word{a, 4}}, t0), b);
}

TEST(SentinelViews, SilenceChangesNothing) {
  sentinel_views views{3};
  views.hear(said{sentinel_word{a, 4}, std::nullopt, std::nullopt}, t0);
  EXPECT_EQ(views.hear(said{std::nullopt, std::nullopt, std::nullopt}, t0), a);
}

TEST(SentinelViews, StaleSentinelThatIsAloneIsNotBelieved) {
  sentinel_views views{3};
  views.hear(said{sentinel_word{b, 5}, sentinel_word{b, 5}, std::nullopt}, t0);
  EXPECT_EQ(views.hear(said{std::nullopt, std::nullopt, sentinel_word{a, 4}}, t0), b);
}

TEST(SentinelViews, MajorityThatIsBehindIsNotBelievedAtOnce) {
  sentinel_views views{3};
  views.hear(said{sentinel_word{b, 5}, std::nullopt, std::nullopt}, t0);
  const said behind{std::nullopt, sentinel_word{a, 4}, sentinel_word{a, 4}};
  EXPECT_EQ(views.hear(behind, t0), b);
  EXPECT_EQ(views.hear(behind, t0 + sentinel_views::stale_max - 1s), b);
  // They have heard by now; what they say later counts anew.
  EXPECT_EQ(views.hear(said{std::nullopt, sentinel_word{b, 5}, sentinel_word{a, 4}}, t0 + 9s), b);
  EXPECT_EQ(views.hear(behind, t0 + 20s), b);
}

TEST(SentinelViews, MajorityThatWasSetUpAnewIsBelievedAfterAWhile) {
  sentinel_views views{3};
  views.hear(said{sentinel_word{b, 5}, sentinel_word{b, 5}, sentinel_word{b, 5}}, t0);
  const said anew{sentinel_word{a, 0}, sentinel_word{a, 0}, std::nullopt};
  EXPECT_EQ(views.hear(anew, t0), b);
  EXPECT_EQ(views.hear(anew, t0 + sentinel_views::stale_max), a);
  // And from then on as any other.
  EXPECT_EQ(views.hear(said{sentinel_word{b, 1}, std::nullopt, std::nullopt}, t0 + 11s), b);
}

TEST(SentinelViews, TheOnlyOneThatIsNamedIsAMajority) {
  sentinel_views views{1};
  views.hear(said{sentinel_word{b, 5}}, t0);
  EXPECT_EQ(views.hear(said{sentinel_word{a, 0}}, t0), b);
  EXPECT_EQ(views.hear(said{sentinel_word{a, 0}}, t0 + sentinel_views::stale_max), a);
}

// One Sentinel announces names, another addresses.
TEST(SentinelViews, AnotherSpellingInTheSameEpochDoesNotMoveTheClient) {
  sentinel_views views{3};
  EXPECT_EQ(views.hear(said{sentinel_word{a_by_name, 2}, std::nullopt, std::nullopt}, t0),
            a_by_name);
  EXPECT_EQ(
      views.hear(said{sentinel_word{a_by_name, 2}, sentinel_word{a, 2}, sentinel_word{a, 2}}, t0),
      a_by_name);
  EXPECT_EQ(views.hear(said{std::nullopt, sentinel_word{a, 2}, std::nullopt}, t0), a);
}

TEST(SentinelViews, OfTheSameEpochTheMostAreBelieved) {
  sentinel_views views{3};
  EXPECT_EQ(views.hear(said{sentinel_word{a, 2}, sentinel_word{b, 2}, sentinel_word{b, 2}}, t0), b);
}

// Whatever a minority says, the client never goes back behind an epoch that it knows.
RC_GTEST_PROP(SentinelViews, MinorityNeverTakesTheClientBack, ()) {
  constexpr std::uint64_t named = 5;
  sentinel_views views{named};
  std::uint64_t known = 0;
  std::optional<server_address> believed;
  const auto rounds = *rc::gen::inRange(1, 12);
  for (int round = 0; round < rounds; ++round) {
    said all(named);
    const auto speakers = *rc::gen::inRange<std::size_t>(1, 3);
    std::uint64_t newest = 0;
    for (std::size_t i = 0; i < speakers; ++i) {
      const auto epoch = *rc::gen::inRange<std::uint64_t>(0, 6);
      newest = std::max(newest, epoch);
      // As Sentinels have it: an epoch names one master.
      all[i] = sentinel_word{{"host", static_cast<std::uint16_t>(1000 + epoch)}, epoch};
    }
    if (!believed || newest >= known) {
      known = newest;
      believed = server_address{"host", static_cast<std::uint16_t>(1000 + newest)};
    }
    RC_ASSERT(views.hear(all, t0) == believed);
  }
}

TEST(FindMaster, OneMasterAmongReplicas) {
  const auto found = find_master(
      servers{replication_word{false, "x", "0"}, replication_word{true, "x", "0"}, std::nullopt});
  EXPECT_EQ(found.is, verdict::one);
  EXPECT_EQ(found.which, 1U);
}

TEST(FindMaster, NoneWhileAllAreReplicasOrSilent) {
  EXPECT_EQ(find_master(servers{replication_word{false, "x", "0"}, std::nullopt}).is,
            verdict::none);
}

TEST(FindMaster, ReplicaThatWasPromotedSucceedsTheMasterThatGoesOn) {
  const auto found =
      find_master(servers{replication_word{true, "x", "0"}, replication_word{true, "y", "x"}});
  EXPECT_EQ(found.is, verdict::one);
  EXPECT_EQ(found.which, 1U);
}

TEST(FindMaster, IndependentServersAreSeveral) {
  EXPECT_EQ(
      find_master(servers{replication_word{true, "x", "0"}, replication_word{true, "y", "0"}}).is,
      verdict::several);
  // Two replicas of one master that were both promoted.
  EXPECT_EQ(
      find_master(servers{replication_word{true, "y", "x"}, replication_word{true, "z", "x"}}).is,
      verdict::several);
}

// A client would leave the locks of the server that was promoted for those that the old one keeps.
TEST(ReplicationViews, SilentSuccessorIsNotLeftForTheMasterThatGoesOn) {
  const servers both{replication_word{true, "x", "0"}, replication_word{true, "y", "x"}};
  const servers only_old{replication_word{true, "x", "0"}, std::nullopt};
  core::replication_views views;
  EXPECT_EQ(views.hear(both, t0).which, 1U);
  EXPECT_EQ(views.hear(only_old, t0 + 1s).is, verdict::none);
  EXPECT_EQ(views.hear(both, t0 + 2s).which, 1U);
  EXPECT_EQ(views.hear(only_old, t0 + 12s).is, verdict::none);
  const auto at_last = views.hear(only_old, t0 + 12s + 1ms);
  EXPECT_EQ(at_last.is, verdict::one) << "it may be gone for good";
  EXPECT_EQ(at_last.which, 0U);
}

TEST(ReplicationViews, SilentMasterIsNotChosen) {
  core::replication_views views;
  EXPECT_EQ(views.hear(servers{replication_word{true, "x", "0"}}, t0).is, verdict::one);
  EXPECT_EQ(views.hear(servers{std::nullopt}, t0 + 1s).is, verdict::none);
}

TEST(FindMaster, ServersThatDoNotTellTheirHistoryAreSeveral) {
  EXPECT_EQ(find_master(servers{replication_word{true, "", ""}, replication_word{true, "", ""}}).is,
            verdict::several);
}

}  // namespace holdfast::test
