// What `holdfast doctor` finds: each thing on a real server that is set up, or treated, so.
#include <filesystem>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <holdfast/holdfast.hpp>

#include "support/fault_proxy.hpp"
#include "support/open_client.hpp"
#include "support/redis_server.hpp"
#include "support/redlock_nodes.hpp"
#include "support/stepped_clock.hpp"

using namespace std::chrono_literals;

namespace holdfast::test {

namespace {

using severity = finding::severity;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

// A test waits for the answers of servers on a busy machine.
constexpr auto timeout = std::chrono::milliseconds{patience};

examination examined(const std::string& url) {
  auto all = examine(url, timeout);
  EXPECT_TRUE(all) << (all ? "" : all.error().message);
  return all ? std::move(*all) : examination{};
}

// "danger eviction", …, in their order. Without how slow it is: the machine may be busy.
std::vector<std::string> found_on(const std::string& url) {
  std::vector<std::string> all;
  for (const auto& one : examined(url).findings) {
    if (one.about == "latency") continue;
    all.push_back(std::string{to_string(one.how)} + " " + one.about);
    EXPECT_FALSE(one.what.empty() || one.voids.empty() || one.advice.empty()) << one.about;
  }
  return all;
}

const std::vector<std::string> kept{"appendonly yes", "appendfsync always"};

redis_server_options keeping(std::vector<std::string> more = {}) {
  more.insert(more.end(), kept.begin(), kept.end());
  return {.tcp = true, .config = std::move(more)};
}

}  // namespace

// ---- one server --------------------------------------------------------------------------------

TEST(Examination, FindsNothingOnAServerThatKeepsItsWord) {
  const redis_server server{keeping()};
  client c{server.tcp_url()};
  const lease held = c.mutex("orders").acquire();
  const lease shared = c.semaphore("encoders", 3).acquire();
  EXPECT_THAT(found_on(server.tcp_url()), IsEmpty());
  const auto all = examined(server.tcp_url());
  EXPECT_EQ(all.servers, 1U);
  EXPECT_EQ(all.answered, 1U);
}

TEST(Examination, LeavesNothingBehind) {
  const redis_server server{keeping()};
  (void)examined(server.tcp_url() + "?prefix=app:");
  EXPECT_EQ(server.command({"DBSIZE"}), "0");
}

TEST(Examination, FindsALogThatIsSyncedTooSeldomOrNotKept) {
  const redis_server every_second{
      {.tcp = true, .config = {"appendonly yes", "appendfsync everysec"}}};
  EXPECT_THAT(found_on(every_second.tcp_url()),
              testing::ElementsAre("warning persistence", "warning restarted"));
  // A host that crashes takes the users of its unix sockets with it.
  EXPECT_THAT(found_on(every_second.url()), IsEmpty());
  const redis_server none;
  EXPECT_THAT(found_on(none.url()),
              testing::ElementsAre("warning persistence", "warning restarted"));
}

TEST(Examination, FindsEvictionAndMemoryThatIsNearlyFull) {
  const redis_server server{keeping({"maxmemory-policy allkeys-lru"})};
  EXPECT_THAT(found_on(server.tcp_url()), testing::ElementsAre("warning eviction"));
  const auto used = std::stoull(server.info("memory", "used_memory"));
  ASSERT_EQ(server.command({"CONFIG", "SET", "maxmemory", std::to_string(used * 21 / 20)}), "OK");
  EXPECT_THAT(found_on(server.tcp_url()),
              testing::ElementsAre("danger eviction", "warning memory"));
}

TEST(Examination, FindsAReplicaAndWhatItIsAReplicaOf) {
  const redis_server master{keeping({"repl-diskless-sync-delay 0"})};
  const redis_server replica{keeping({"replicaof 127.0.0.1 " + std::to_string(master.port())})};
  ASSERT_TRUE(eventually([&] { return master.info("replication", "connected_slaves") == "1"; }));
  EXPECT_THAT(found_on(master.tcp_url()), testing::ElementsAre("warning replica"));
  EXPECT_THAT(found_on(replica.tcp_url()), Contains("danger role"));
  const auto advice = [&] { return examined(master.tcp_url()).findings.front().advice; };
  EXPECT_THAT(advice(), HasSubstr("min-replicas-to-write"));
  ASSERT_EQ(master.command({"CONFIG", "SET", "min-replicas-to-write", "1"}), "OK");
  EXPECT_THAT(advice(), Not(HasSubstr("min-replicas-to-write")));
}

TEST(Examination, FindsAServerThatCannotWriteToItsDisk) {
  const redis_server server{keeping({"dbfilename in-the-way"})};
  std::filesystem::create_directory(server.folder() / "in-the-way");
  (void)server.command({"BGSAVE"});
  ASSERT_TRUE(
      eventually([&] { return server.info("persistence", "rdb_last_bgsave_status") == "err"; }));
  EXPECT_THAT(found_on(server.tcp_url()), Contains("danger disk"));
}

TEST(Examination, FindsAClockThatIsWrongAndOneThatSteps) {
  stepped_clock clock;
  const redis_server server{clock.on(keeping())};
  clock.step_wall_clock(1h);
  EXPECT_THAT(found_on(server.tcp_url()), testing::ElementsAre("warning clock"));
  clock.step_wall_clock(-1h);
  EXPECT_THAT(found_on(server.tcp_url()), IsEmpty());
  const auto asked = server.calls_of("time");
  std::jthread steps{[&] {
    static_cast<void>(eventually([&] { return server.calls_of("time") > asked; }));
    clock.step_wall_clock(500ms);
  }};
  EXPECT_THAT(found_on(server.tcp_url()), Contains("danger clock-step"));
}

TEST(Examination, FindsLocksAndCountersThatAreNotAsTheyShouldBe) {
  const redis_server server{keeping()};
  const auto url = server.tcp_url() + "?prefix=app:";
  client c{url};
  const lease held = c.mutex("persisted", {.renew = false}).acquire();
  ASSERT_EQ(server.command({"PERSIST", "app:persisted"}), "1");
  EXPECT_THAT(found_on(url), testing::ElementsAre("danger no-expiry"));

  const std::string id(32, 'a');
  (void)server.command({"SET", "app:damaged", id + ";holdfast=1;", "PX", "600000"});
  (void)server.command({"SET", "app:newer", id + ";holdfast=99;token=1;", "PX", "600000"});
  (void)server.command({"RPUSH", "app:foreign", "x"});
  (void)server.command({"HSET", "holdfast:{abc}:slot", "token", "x"});
  (void)server.command({"HSET", "holdfast:{abd}:slot", "token", "1"});
  (void)server.command({"PEXPIRE", "holdfast:{abd}:slot", "600000"});
  EXPECT_THAT(found_on(url),
              testing::ElementsAre("danger no-expiry", "danger damaged", "danger newer",
                                   "danger record", "danger record", "warning foreign"));
  for (const auto& one : examined(url).findings) {
    if (one.about == "foreign") {
      EXPECT_THAT(one.what, HasSubstr("app:foreign"));
    }
  }
  // Without a prefix any program's keys may be among them.
  EXPECT_THAT(found_on(server.tcp_url()), Contains("note foreign"));
}

TEST(Examination, FindsRightsThatAreMissingAndSaysWhatItMayNotLookAt) {
  const redis_server server{keeping()};
  const auto url =
      "redis://locks:secret@127.0.0.1:" + std::to_string(server.port()) + "?prefix=app:";
  const auto may = [&](std::vector<std::string> rule) {
    rule.insert(rule.begin(), {"ACL", "SETUSER", "locks", "reset", "on", ">secret"});
    ASSERT_EQ(server.command(rule), "OK");
  };
  may({"~*", "&*", "+@all", "-publish", "-append"});
  EXPECT_THAT(found_on(url), testing::ElementsAre("warning rights", "warning rights"));
  may({"~*", "&*", "+@all", "-set"});
  EXPECT_THAT(found_on(url), testing::ElementsAre("danger rights"));
  may({"~other:*", "&*", "+@all"});
  EXPECT_THAT(found_on(url), Contains("danger rights"));
  may({"~*", "+@all"});
  EXPECT_THAT(found_on(url), testing::ElementsAre("warning rights"));
  may({"~*", "&*", "+@all", "-info", "-config"});
  EXPECT_THAT(found_on(url), testing::ElementsAre("note unseen"));
  EXPECT_TRUE(examined(url).is_sound());
  EXPECT_EQ(server.command({"DBSIZE"}), "0");
}

TEST(Examination, FindsAServerThatIsSlow) {
  const redis_server server{keeping()};
  fault_proxy proxy{server.where()};
  proxy.delay_replies(260ms);
  const auto all = examined(proxy.url());
  EXPECT_THAT(all.findings, Contains(testing::Field(&finding::about, "latency")));
}

TEST(Examination, FailsWhereNoServerAnswersOrLetsUsIn) {
  redis_server server{{.tcp = true, .password = "secret"}};
  EXPECT_EQ(examine("redis://127.0.0.1:" + std::to_string(server.port())).error().code,
            errc::not_authenticated);
  server.kill9();
  EXPECT_EQ(examine(server.tcp_url()).error().code, errc::store_unreachable);
  EXPECT_EQ(examine("memory:").error().code, errc::unsupported);
  EXPECT_EQ(examine("nonsense").error().code, errc::invalid_argument);
}

TEST(Examination, FindsAMemberOfAClusterAndAVoterUnsuitable) {
  const redis_server member{{.tcp = true, .config = {"cluster-enabled yes"}}};
  EXPECT_THAT(found_on(member.tcp_url()), testing::ElementsAre("danger unsuitable"));
  redlock_nodes set{3};
  EXPECT_THAT(found_on(set[0].tcp_url()), testing::ElementsAre("danger unsuitable"));
}

// ---- a quorum ----------------------------------------------------------------------------------

namespace {

redlock_nodes_options silent_nodes() { return {.query = "node_timeout=10000"}; }

}  // namespace

TEST(ExaminationOfAQuorum, FindsNothingWhereAllNodesVote) {
  redlock_nodes set{3, silent_nodes()};
  client c{set.url()};
  const lease held = c.mutex("orders").acquire();
  EXPECT_THAT(found_on(set.url()), IsEmpty());
}

TEST(ExaminationOfAQuorum, FindsNodesThatAreAwayAndAMajorityThatIs) {
  redlock_nodes set{3, silent_nodes()};
  set[2].kill9();
  EXPECT_THAT(found_on(set.url()), testing::ElementsAre("warning unreachable"));
  set[1].kill9();
  EXPECT_THAT(found_on(set.url()), testing::ElementsAre("danger majority", "warning unreachable",
                                                        "warning unreachable"));
  set[0].kill9();
  EXPECT_EQ(examine(set.url()).error().code, errc::store_unreachable);
}

TEST(ExaminationOfAQuorum, FindsNodesThatDoNotVote) {
  redlock_nodes set{3, {.query = "node_timeout=10000", .init = false}};
  EXPECT_THAT(found_on(set.url()), testing::ElementsAre("danger majority", "warning no-vote",
                                                        "warning no-vote", "warning no-vote"));
}

TEST(ExaminationOfAQuorum, FindsANodeThatIsNamedTwice) {
  redlock_nodes set{2, {.init = false}};
  const auto again = "localhost:" + std::to_string(set[0].port());
  const auto url = "redlock://" + set.name(0) + "," + set.name(1) + "," + again;
  EXPECT_THAT(found_on(url + "?node_timeout=10000"), Contains("danger same-server"));
}

TEST(ExaminationOfAQuorum, FindsAReplicaOfANodeAndAMemberOfACluster) {
  redlock_nodes set{2, {.init = false}};
  const redis_server member{{.tcp = true, .config = {"cluster-enabled yes"}}};
  const redis_server replica{
      {.tcp = true, .config = {"replicaof 127.0.0.1 " + std::to_string(set[0].port())}}};
  ASSERT_TRUE(eventually([&] { return set[0].info("replication", "connected_slaves") == "1"; }));
  const auto found = found_on("redlock://" + set.name(0) + "," + set.name(1) + ",127.0.0.1:" +
                              std::to_string(member.port()) + "?node_timeout=10000");
  EXPECT_THAT(found, Contains("danger replica"));
  EXPECT_THAT(found, Contains("danger unsuitable"));
}

TEST(ExaminationOfAQuorum, FindsClocksThatAreFarApart) {
  stepped_clock clock;
  redlock_nodes set{2, {.init = false}};
  const redis_server other{clock.on({.tcp = true})};
  clock.step_wall_clock(10min);
  const auto found = found_on("redlock://" + set.name(0) + "," + set.name(1) +
                              ",127.0.0.1:" + std::to_string(other.port()) + "?node_timeout=10000");
  EXPECT_THAT(found, Contains("danger clock"));
}

// ---- the access rule ---------------------------------------------------------------------------

TEST(AclRule, NamesTheUserItsKeysAndNoPassword) {
  const auto rule = acl_rule("redis://me:secret@db?prefix=app:", "locks").value();
  EXPECT_THAT(rule,
              testing::StartsWith("ACL SETUSER locks reset on >PASSWORD ~holdfast:{* ~app:* &"));
  EXPECT_THAT(rule, Not(HasSubstr("secret")));
  EXPECT_THAT(acl_rule("redis://db").value(), HasSubstr(" ~* "));
  EXPECT_THAT(acl_rule("redis://db?prefix=my%20app*").value(), HasSubstr(R"("~my app\\**")"));
  EXPECT_EQ(acl_rule("redis://db", "two words").error().code, errc::invalid_argument);
}

TEST(AclRule, HasWhatEachDeploymentNeedsBeside) {
  const auto of = [](const char* url) { return acl_rule(url).value() + " "; };
  const std::vector<std::string> extras{"+info", "+wait", "+cluster|slots", "+asking", "+linsert"};
  const auto extras_of = [&](const char* url) {
    std::vector<std::string> has;
    std::copy_if(extras.begin(), extras.end(), std::back_inserter(has), [&](const auto& one) {
      return of(url).find(" " + one + " ") != std::string::npos;
    });
    return has;
  };
  using all = std::vector<std::string>;
  EXPECT_EQ(extras_of("redis://db"), all{});
  EXPECT_EQ(extras_of("redis+sentinel://s1,s2/main"), all{});
  EXPECT_EQ(extras_of("redis://db1,db2"), all{"+info"});
  EXPECT_EQ(extras_of("redis://db?replicas=1"), all{"+wait"});
  EXPECT_EQ(extras_of("redis+cluster://n1,n2"), (all{"+cluster|slots", "+asking", "+linsert"}));
  EXPECT_EQ(extras_of("redlock://n1,n2,n3"), all{"+info"});
}

}  // namespace holdfast::test
