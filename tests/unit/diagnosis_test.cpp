// From facts to findings: each is about one thing, and the most dangerous come first.
#include "core/diagnosis.hpp"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace std::chrono_literals;

namespace holdfast::core {

namespace {

using severity = finding::severity;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

// A server on which nothing is wrong.
server_facts sound(std::string node = "db:6379") {
  server_facts facts;
  facts.node = std::move(node);
  facts.version = "7.0.15";
  facts.run_id = "run of " + facts.node;
  facts.replicas = 0;
  facts.keeps_log = true;
  facts.syncs_log = "always";
  facts.eviction = "noeviction";
  facts.up_for = 24h;
  facts.clock_ahead = 0ms;
  facts.clock_doubt = 1ms;
  facts.round_trip = 1ms;
  facts.keys.emplace();
  return facts;
}

deployment one(server_facts facts) {
  deployment what;
  what.servers.push_back(std::move(facts));
  return what;
}

deployment quorum() {
  deployment what;
  what.is = deployment::form::quorum;
  for (const auto* node : {"n1", "n2", "n3"}) {
    what.servers.push_back(sound(node));
    what.servers.back().votes = true;
  }
  return what;
}

std::vector<std::string> abouts(const deployment& what) {
  std::vector<std::string> all;
  for (const auto& found : diagnose(what))
    all.push_back(std::string{to_string(found.how)} + " " + found.about);
  return all;
}

}  // namespace

TEST(Diagnosis, OfASoundServerOrQuorumIsEmpty) {
  EXPECT_THAT(abouts(one(sound())), IsEmpty());
  EXPECT_THAT(abouts(quorum()), IsEmpty());
}

TEST(Diagnosis, PutsTheMostDangerousFirst) {
  auto facts = sound();
  facts.unseen = {"CONFIG"};
  facts.keeps_log = false;
  facts.eviction = "allkeys-lru";
  facts.memory_max = 100;
  EXPECT_THAT(abouts(one(facts)),
              ElementsAre("danger eviction", "warning persistence", "note unseen"));
}

TEST(Diagnosis, SaysHowManyKeysWereEvicted) {
  auto facts = sound();
  facts.eviction = "volatile-ttl";
  facts.memory_max = 100;
  facts.evicted = 12;
  EXPECT_THAT(diagnose(one(facts)).front().what, HasSubstr("12 keys were evicted"));
}

TEST(Diagnosis, AsksForThePersistenceThatTheStoreNeeds) {
  auto facts = sound();
  facts.syncs_log = "everysec";
  EXPECT_THAT(abouts(one(facts)), ElementsAre("warning persistence"));
  auto here = one(facts);
  here.on_this_host = true;  // a host that crashes takes the holders with it
  EXPECT_THAT(abouts(here), IsEmpty());
  // A node that was restarted does not vote, whatever it kept.
  auto nodes = quorum();
  for (auto& node : nodes.servers)
    node.keeps_log = false;
  EXPECT_THAT(abouts(nodes), IsEmpty());
}

TEST(Diagnosis, OfARecentRestartDependsOnWhatWasKept) {
  auto facts = sound();
  facts.up_for = 5min;
  EXPECT_THAT(abouts(one(facts)), IsEmpty());
  facts.keeps_log = false;
  EXPECT_THAT(abouts(one(facts)), ElementsAre("warning persistence", "warning restarted"));
  facts.up_for = recent_start;
  EXPECT_THAT(abouts(one(facts)), ElementsAre("warning persistence"));
}

TEST(Diagnosis, ToleratesOfAClockWhatTheRoundTripExplains) {
  auto facts = sound();
  facts.clock_ahead = -clock_skew_noticed - 2s;
  facts.clock_doubt = 3s;
  EXPECT_THAT(abouts(one(facts)), IsEmpty());
  facts.clock_doubt = 1s;
  EXPECT_THAT(abouts(one(facts)), ElementsAre("warning clock"));
  EXPECT_THAT(diagnose(one(facts)).front().what, HasSubstr("3000 ms behind"));
}

TEST(Diagnosis, OfClocksOfNodesLooksAtHowFarTheyAreApart) {
  auto nodes = quorum();
  for (auto& node : nodes.servers)
    node.clock_ahead = 1h;
  EXPECT_THAT(abouts(nodes), ElementsAre("warning clock", "warning clock", "warning clock"));
  nodes.servers[1].clock_ahead = 1h + 31s;
  EXPECT_EQ(abouts(nodes).front(), "danger clock");
  nodes.servers[1].clock_ahead = 1h + 6s;
  nodes.max_ttl = 5s;
  EXPECT_EQ(abouts(nodes).front(), "danger clock");
}

TEST(Diagnosis, OfAReplicaIsADangerOnAQuorumOnly) {
  auto facts = sound();
  facts.replicas = 2;
  EXPECT_THAT(abouts(one(facts)), ElementsAre("warning replica"));
  EXPECT_THAT(diagnose(one(facts)).front().advice, HasSubstr("min-replicas-to-write"));
  facts.wants_replicas = true;
  EXPECT_THAT(diagnose(one(facts)).front().advice, Not(HasSubstr("min-replicas-to-write")));
  auto nodes = quorum();
  nodes.servers[1].replicas = 1;
  EXPECT_THAT(abouts(nodes), ElementsAre("danger replica"));
}

TEST(Diagnosis, CountsTheNodesThatVote) {
  auto nodes = quorum();
  nodes.servers[0].votes = false;
  nodes.servers[0].standing = "it was restarted";
  EXPECT_THAT(abouts(nodes), ElementsAre("warning no-vote"));
  nodes.servers[1] = {};
  nodes.servers[1].node = "n2";
  nodes.servers[1].trouble = failure{errc::store_unreachable, "gone"};
  EXPECT_THAT(abouts(nodes),
              ElementsAre("danger majority", "warning unreachable", "warning no-vote"));
  EXPECT_THAT(diagnose(nodes).front().what, HasSubstr("1 of 3 nodes vote, and 2 are needed"));
}

TEST(Diagnosis, KnowsAServerThatIsNamedTwice) {
  auto nodes = quorum();
  nodes.servers[2].run_id = nodes.servers[0].run_id;
  EXPECT_THAT(abouts(nodes), ElementsAre("danger same-server"));
}

TEST(Diagnosis, MeasuresANodeByItsTimeout) {
  auto nodes = quorum();
  nodes.servers[0].round_trip = 30ms;
  EXPECT_THAT(abouts(nodes), ElementsAre("warning latency"));
  nodes.node_timeout = 100ms;
  EXPECT_THAT(abouts(nodes), IsEmpty());
}

TEST(Diagnosis, OfAMissingRightDependsOnWhatItIsFor) {
  auto facts = sound();
  facts.missing_rights = {{"publish", "message to a waiter", false}, {"set", "locking", true}};
  EXPECT_THAT(abouts(one(facts)), ElementsAre("danger rights", "warning rights"));
}

TEST(Diagnosis, OfOldServersAsksForNewerOnes) {
  for (const auto* old : {"6.0.16", "6.1.240", "5.9"}) {
    auto facts = sound();
    facts.version = old;
    EXPECT_THAT(abouts(one(facts)), ElementsAre("warning version")) << old;
  }
  for (const auto* recent : {"6.2.14", "7.0.15", "10.0", ""}) {
    auto facts = sound();
    facts.version = recent;
    EXPECT_THAT(abouts(one(facts)), IsEmpty()) << recent;
  }
}

TEST(Diagnosis, SaysEverythingThatIsToBeSaid) {
  auto facts = sound();
  facts.is_replica = facts.in_cluster = facts.log_fails = true;
  facts.clock_stepped = -2s;
  facts.memory_max = facts.memory_used = 100;
  facts.keys->complete = false;
  for (auto* group :
       {&facts.keys->without_expiry, &facts.keys->damaged, &facts.keys->newer, &facts.keys->foreign,
        &facts.keys->expiring_record, &facts.keys->damaged_record})
    group->add("key");
  const auto found = diagnose(one(facts));
  EXPECT_EQ(found.size(), 12U);
  for (const auto& each : found) {
    EXPECT_EQ(each.node, "db:6379") << each.about;
    EXPECT_FALSE(each.what.empty() || each.voids.empty() || each.advice.empty()) << each.about;
  }
}

}  // namespace holdfast::core
