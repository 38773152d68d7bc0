// `holdfast redlock`, and the other verbs on a set of nodes.
#include <nlohmann/json.hpp>

#include <holdfast/holdfast.hpp>

#include "cli_test.hpp"
#include "support/redlock_nodes.hpp"

using namespace std::chrono_literals;

namespace holdfast::test {
namespace {

run_result on(const redlock_nodes& set, std::vector<std::string> args) {
  args.insert(args.begin(), HOLDFAST_BINARY);
  return run_program({.args = std::move(args), .env = {{"HOLDFAST_STORE", set.url()}}});
}

TEST(CliRedlock, NewSetIsInitialisedAndThenRuns) {
  redlock_nodes set{3, {.init = false}};
  const auto before = on(set, {"redlock", "status"});
  EXPECT_EQ(before.exit, exited(1)) << before.err;
  EXPECT_TRUE(contains(before.out, set.name(0) + "  is empty")) << before.out;

  const auto init = on(set, {"redlock", "init"});
  EXPECT_EQ(init.exit, exited(0)) << init.err;
  const auto after = on(set, {"redlock", "status", "--json"});
  EXPECT_EQ(after.exit, exited(0)) << after.err;
  EXPECT_TRUE(contains(after.out, "\"votes\":true")) << after.out;

  const auto ran = on(set, {"run", "report", "--", "sh", "-c", "echo $HOLDFAST_TOKEN"});
  EXPECT_EQ(ran.exit, exited(0)) << ran.err;
  EXPECT_GT(ran.out.size(), 10U);
  EXPECT_EQ(set.holding("report"), 0U) << "given back on every node before it ended";
}

TEST(CliRedlock, SeveralLocksAreHeldOnAQuorum) {
  redlock_nodes set{3};
  const auto ran = on(set, {"run", "b", "a", "--", HOLDFAST_BINARY, "status", "--json"});
  EXPECT_EQ(ran.exit, exited(0)) << ran.err;
  EXPECT_EQ(nlohmann::json::parse(ran.out).size(), 2U) << ran.out;
  EXPECT_EQ(set.holding("a") + set.holding("b"), 0U);
}

TEST(CliRedlock, InitNeedsEveryNodeAndSkipsTheirWaits) {
  redlock_nodes set{3};
  set[0].kill9();
  const auto away = on(set, {"redlock", "init"});
  EXPECT_EQ(away.exit, exited(69)) << away.err;
  EXPECT_TRUE(contains(away.err, "every node has to answer")) << away.err;
  set[0].restart();
  EXPECT_EQ(on(set, {"redlock", "status"}).exit, exited(1));
  const auto back = on(set, {"redlock", "init"});
  EXPECT_EQ(back.exit, exited(0)) << back.err;
  EXPECT_EQ(on(set, {"redlock", "status"}).exit, exited(0));
}

// Nothing but `run`: it waits for the set as it would for the lock, and says why.
TEST(CliRedlock, RunWaitsForASetThatHasNeverBeenUsed) {
  redlock_nodes set{3, {.query = "node_timeout=1000&max_ttl=2000", .init = false}};
  const auto impatient = on(set, {"run", "report", "--ttl", "1s", "--wait", "0", "--", "true"});
  EXPECT_EQ(impatient.exit, exited(69)) << impatient.err;
  EXPECT_TRUE(contains(impatient.err, "holdfast redlock init")) << impatient.err;
  EXPECT_EQ(impatient.err.find("redlock init"), impatient.err.rfind("redlock init"))
      << impatient.err;
  const auto patient = on(set, {"run", "report", "--ttl", "1s", "--", "echo", "done"});
  EXPECT_EQ(patient.exit, exited(0)) << patient.err;
  EXPECT_EQ(patient.out, "done\n");
  EXPECT_TRUE(contains(patient.err, "no majority votes yet")) << patient.err;
  EXPECT_TRUE(contains(patient.err, "votes in")) << patient.err;
  EXPECT_TRUE(contains(patient.err, "holdfast redlock init")) << patient.err;
}

TEST(CliRedlock, AnotherMaxTtlIsRefusedWithTheRightOne) {
  redlock_nodes set{3};
  const auto said =
      run_program({.args = {HOLDFAST_BINARY, "run", "report", "--wait", "0", "--", "true"},
                   .env = {{"HOLDFAST_STORE", set.url_with("node_timeout=1000&max_ttl=120000")}}});
  EXPECT_NE(said.exit, exited(0));
  EXPECT_TRUE(contains(said.err, "Write max_ttl=60000 in the URL")) << said.err;
}

TEST(CliRedlock, StatusShowsWhatEachNodeSaysAndHowFarTheyAgree) {
  redlock_nodes set{5, {.query = "node_timeout=1000&max_ttl=600000"}};
  child_process holder{{.args = {HOLDFAST_BINARY, "run", "deploy", "--ttl", "10m", "--label",
                                 "a\x1b[31m", "--", "sh", "-c", "echo ready 1 go; read x"},
                        .env = {{"HOLDFAST_STORE", set.url()}}}};
  ready_numbers(holder);
  ASSERT_TRUE(set.await_all_holding("deploy"));
  (void)set[2].command({"SET", "deploy", "a \x1b[2J stranger", "PX", "600000"});
  set[4].kill9();
  set[4].restart();
  ASSERT_EQ(on(set, {"redlock", "status"}).exit, exited(1));

  const auto text = on(set, {"status", "deploy"});
  ASSERT_EQ(text.exit, exited(0)) << text.err;
  EXPECT_TRUE(contains(text.out, " of 5 nodes; ")) << text.out;
  EXPECT_TRUE(contains(text.out, set.name(2) + " held by somebody else")) << text.out;
  EXPECT_TRUE(contains(text.out, set.name(4) + " in quarantine for ")) << text.out;
  EXPECT_TRUE(contains(text.out, "it is empty and may have lost locks")) << text.out;
  EXPECT_FALSE(contains(text.out, "\x1b")) << text.out;

  const auto said = on(set, {"status", "deploy", "--json"});
  ASSERT_EQ(said.exit, exited(0)) << said.err;
  EXPECT_FALSE(contains(said.out, "\x1b"));
  const auto json = nlohmann::json::parse(said.out);
  ASSERT_EQ(json.at("nodes").size(), 5U);
  const auto& stranger = json.at("nodes").at(2);
  EXPECT_EQ(stranger.at("node"), set.name(2));
  EXPECT_EQ(stranger.at("state"), "other");
  EXPECT_EQ(stranger.at("holder").at("value"), "a \\x1b[2J stranger");
  EXPECT_GT(stranger.at("remaining_ms").get<std::int64_t>(), 300'000);
  EXPECT_EQ(json.at("nodes").at(4).at("state"), "quarantined");
  EXPECT_TRUE(json.at("nodes").at(4).at("holder").is_null());
  std::size_t held = 0;
  for (const auto& one : json.at("nodes")) {
    if (one.at("state") != "held") continue;
    ++held;
    EXPECT_EQ(one.at("holder").at("token"), json.at("holder").at("token"));
  }
  EXPECT_EQ(held, 3U);

  const auto all = on(set, {"status"});
  EXPECT_TRUE(contains(all.out, "NODES")) << all.out;
  EXPECT_TRUE(contains(all.out, "3/5")) << all.out;
}

// An empty list would say that nothing is held.
TEST(CliRedlock, StatusOfAQuorumThatCannotTellIsAnError) {
  redlock_nodes set{3, {.query = "node_timeout=1000&max_ttl=600000"}};
  client holder{set.url(), {.lock = {.ttl = 600'000ms}}};
  const lease held = holder.mutex("a").acquire();
  ASSERT_TRUE(set.await_all_holding("a"));
  (void)set[0].command({"FLUSHALL"});
  EXPECT_TRUE(contains(on(set, {"status"}).out, "\na ")) << "two nodes can tell";
  (void)set[1].command({"FLUSHALL"});
  (void)set[2].command({"FLUSHALL"});
  for (const auto& args : {std::vector<std::string>{"status"}, {"status", "a"}, {"status", "x*"}}) {
    const auto forgot = on(set, args);
    EXPECT_EQ(forgot.exit, exited(69)) << forgot.out << forgot.err;
    EXPECT_TRUE(contains(forgot.err, "no majority votes yet")) << forgot.err;
  }
  set[0].kill9();
  set[1].kill9();
  const auto away = on(set, {"status", "--json"});
  EXPECT_EQ(away.exit, exited(69)) << away.out << away.err;
  EXPECT_EQ(away.out, "");
}

TEST(CliRedlock, NodeIsReplaced) {
  redlock_nodes set{4, {.init = false}};
  const auto names = [&](std::size_t a, std::size_t b, std::size_t c, const std::string& epoch) {
    return "redlock://" + set.name(a) + "," + set.name(b) + "," + set.name(c) +
           "?node_timeout=1000&epoch=" + epoch;
  };
  const auto call = [](std::vector<std::string> args) {
    args.insert(args.begin(), HOLDFAST_BINARY);
    return run_program({.args = std::move(args)});
  };
  const auto from = names(0, 1, 2, "1");
  const auto to = names(0, 1, 3, "2");
  ASSERT_EQ(call({"redlock", "init", "--store", from}).exit, exited(0));
  EXPECT_EQ(call({"redlock", "move", "--store", from}).exit, exited(64)) << "where to?";
  EXPECT_EQ(call({"redlock", "move", "--store", from, "--to", names(0, 1, 3, "1")}).exit,
            exited(64))
      << "the same epoch";
  const auto much = call({"redlock", "move", "--store", from, "--to",
                          "redlock://" + set.name(0) + "?epoch=2&node_timeout=1000"});
  EXPECT_EQ(much.exit, exited(1)) << much.err;
  EXPECT_TRUE(contains(much.err, "nothing was changed")) << much.err;

  const auto moved = call({"redlock", "move", "--store", from, "--to", to});
  ASSERT_EQ(moved.exit, exited(0)) << moved.err;
  EXPECT_TRUE(contains(moved.out, "new list")) << moved.out;
  EXPECT_EQ(call({"run", "a", "--store", to, "--", "true"}).exit, exited(0));
  const auto refused = call({"run", "a", "--store", from, "--wait", "0", "--", "true"});
  EXPECT_NE(refused.exit, exited(0));
  EXPECT_TRUE(contains(refused.err, set.name(3))) << refused.err;
}

TEST(CliRedlock, OtherStoresHaveNoNodes) {
  EXPECT_EQ(
      run_program({.args = {HOLDFAST_BINARY, "redlock", "status", "--store", "memory:"}}).exit,
      exited(64));
}

}  // namespace
}  // namespace holdfast::test
