// `holdfast run` with several names: all of these locks, or none.
#include <algorithm>
#include <csignal>

#include "cli_test.hpp"
#include "support/temp_dir.hpp"
#include "support/watch.hpp"

namespace holdfast::test {
namespace {

class CliSeveral : public cli_test {
 protected:
  // Runs under a and b until its input ends.
  [[nodiscard]] process_options held(std::vector<std::string> options = {}) const {
    std::vector<std::string> args{"run", "a", "b"};
    args.insert(args.end(), options.begin(), options.end());
    args.insert(args.end(), {"--", "sh", "-c", "echo ready $$ go; read line; true"});
    return holdfast(args);
  }
  void expect_free() const { EXPECT_TRUE(is_free("a") && is_free("b")); }
};

TEST_F(CliSeveral, AllAreHeldAndGivenBack) {
  child_process wrapper{held()};
  ASSERT_FALSE(ready_numbers(wrapper).empty()) << wrapper.stderr_text();
  EXPECT_FALSE(is_free("a"));
  EXPECT_FALSE(is_free("b"));
  wrapper.close_stdin();
  EXPECT_EQ(wrapper.wait_exit(), exited(0)) << wrapper.stderr_text();
  expect_free();
}

TEST_F(CliSeveral, BusyOneIsNamedAndNothingIsHeld) {
  ASSERT_EQ(run({"lock", "b", "--label", "nightly", "--ttl", "10m"}).exit, exited(0));
  const auto result = run({"run", "a", "b", "c", "--wait", "0", "--", "echo", "ran"});
  EXPECT_EQ(result.exit, exited(75));
  EXPECT_EQ(result.out, "");
  EXPECT_TRUE(contains(result.err, "'b' is busy: held by")) << result.err;
  EXPECT_TRUE(contains(result.err, "nightly")) << result.err;
  EXPECT_FALSE(contains(result.err, "'a'") || contains(result.err, "'c'")) << result.err;
  EXPECT_TRUE(is_free("a") && is_free("c"));
}

TEST_F(CliSeveral, WaitNamesTheOneThatAnotherHas) {
  child_process other{holdfast({"run", "b", "--", "sh", "-c", "echo ready $$ go; read line"})};
  ASSERT_FALSE(ready_numbers(other).empty());
  child_process wrapper{holdfast({"run", "b", "a", "--", "echo", "ran"})};
  ASSERT_TRUE(wrapper.wait_for_output("waiting for 'b': held by")) << wrapper.stderr_text();
  EXPECT_FALSE(is_free("a")) << "what comes first by name is held meanwhile";
  other.close_stdin();
  EXPECT_EQ(wrapper.wait_exit(), exited(0)) << wrapper.stderr_text();
  EXPECT_EQ(wrapper.stdout_text(), "ran\n");
  EXPECT_FALSE(contains(wrapper.stderr_text(), "'a'")) << wrapper.stderr_text();
}

TEST_F(CliSeveral, OppositeOrdersOfTwoProcessesDoNotDeadlock) {
  const temp_dir folder;
  const std::string inside = folder.file("inside");
  const auto rounds = [&](const std::string& names) {
    auto options = holdfast({});
    options.args = {"sh", "-c",
                    "for i in 1 2 3 4 5 6 7 8; do " HOLDFAST_BINARY " run " + names +
                        " --quiet --wait 30s -- sh -c 'mkdir \"$1\" && rmdir \"$1\"' sh \"$1\" "
                        "|| exit $?; done",
                    "sh", inside};
    return options;
  };
  child_process one{rounds("x y z")};
  child_process other{rounds("z y x")};
  child_process third{rounds("y z")};
  for (child_process* each : {&one, &other, &third})
    EXPECT_EQ(each->wait_exit(3 * patience), exited(0)) << each->stderr_text();
}

// ---- what the command is told ------------------------------------------------------------------

constexpr const char* show_variables =
    "env | grep -E '^HOLDFAST_(LOCKS?|TOKEN)(_[0-9]+)?=' | sed 's/\\(TOKEN.*=\\).*/\\1N/' | sort";

TEST_F(CliSeveral, CommandIsToldEachByItsNumber) {
  auto options = holdfast({"run", "b", "a c", "--", "sh", "-c", show_variables});
  options.env["HOLDFAST_LOCK"] = "old";
  options.env["HOLDFAST_TOKEN"] = "5";
  options.env["HOLDFAST_LOCK_3"] = "old";
  options.env["HOLDFAST_TOKEN_3"] = "5";
  const auto result = run_program(std::move(options));
  EXPECT_EQ(result.out,
            "HOLDFAST_LOCKS=2\nHOLDFAST_LOCK_1=b\nHOLDFAST_LOCK_2=a c\n"
            "HOLDFAST_TOKEN_1=N\nHOLDFAST_TOKEN_2=N\n")
      << "in the order in which they were named; " << result.err;
}

TEST_F(CliSeveral, TokensAreThoseOfTheLocks) {
  const auto result = run({"run", "b", "a", "--", "sh", "-c",
                           "for n in a b; do " HOLDFAST_BINARY
                           " status $n --json | grep -o '\"token\":[0-9]*' | head -1; done; "
                           "echo $HOLDFAST_TOKEN_2 $HOLDFAST_TOKEN_1"});
  std::istringstream lines{result.out};
  std::string a;
  std::string b;
  std::string told;
  ASSERT_TRUE(std::getline(lines, a) && std::getline(lines, b) && std::getline(lines, told));
  const auto number = [](const std::string& line) { return line.substr(line.find(':') + 1); };
  EXPECT_EQ(told, number(a) + " " + number(b));
}

TEST_F(CliSeveral, InnerRunOfOneForgetsTheNumbers) {
  const auto result =
      run({"run", "a", "b", "--", HOLDFAST_BINARY, "run", "c", "--", "sh", "-c", show_variables});
  EXPECT_EQ(result.out, "HOLDFAST_LOCK=c\nHOLDFAST_TOKEN=N\n") << result.err;
}

TEST_F(CliSeveral, RunThatWouldWaitForItselfIsRefused) {
  const auto result = run({"run", "a", "b", "--", HOLDFAST_BINARY, "run", "c", "b", "--", "true"});
  EXPECT_EQ(result.exit, exited(64));
  EXPECT_TRUE(contains(result.err, "runs under the lock 'b' already")) << result.err;
}

// ---- loss --------------------------------------------------------------------------------------

TEST_F(CliSeveral, LossOfOneStopsTheCommandAndGivesTheOthersBack) {
  for (const std::string lost : {"a", "b"}) {
    child_process wrapper{holdfast({"run", "a", "b", "--ttl", "6s", "--", "sh", "-c",
                                    "trap 'echo got TERM' TERM; echo ready $$ go; "
                                    "while :; do sleep 0.05; done"})};
    const auto command = ready_numbers(wrapper);
    ASSERT_EQ(command.size(), 1U);
    EXPECT_EQ(server_.command({"DEL", lost}), "1");
    EXPECT_EQ(wrapper.wait_exit(), exited(76));
    EXPECT_TRUE(contains(wrapper.stdout_text(), "got TERM"));
    EXPECT_TRUE(contains(wrapper.stderr_text(), "lost the lock '" + lost + "'"))
        << wrapper.stderr_text();
    EXPECT_FALSE(alive(command[0]));
    expect_free();
  }
}

TEST_F(CliSeveral, LossThatShowsAtTheEndIsReported) {
  child_process wrapper{held()};
  ASSERT_FALSE(ready_numbers(wrapper).empty());
  EXPECT_EQ(server_.command({"DEL", "b"}), "1");
  wrapper.close_stdin();  // ends long before the next renewal
  EXPECT_EQ(wrapper.wait_exit(), exited(76));
  EXPECT_TRUE(contains(wrapper.stderr_text(), "lost the lock 'b'")) << wrapper.stderr_text();
  expect_free();
}

TEST_F(CliSeveral, GuardianOfAKilledWrapperGivesAllBack) {
  child_process wrapper{held({"--ttl", "10m"})};
  const auto command = ready_numbers(wrapper);
  ASSERT_EQ(command.size(), 1U);
  wrapper.signal(SIGKILL);
  EXPECT_TRUE(eventually([&] { return is_free("a") && is_free("b"); })) << "long before the TTL";
  EXPECT_FALSE(alive(command[0]));
}

TEST_F(CliSeveral, GuardianGivesTheOthersBackWhenOneHasEnded) {
  child_process wrapper{held({"--ttl", "10m"})};
  ASSERT_FALSE(ready_numbers(wrapper).empty());
  wrapper.signal(SIGSTOP);  // it cannot notice the loss
  EXPECT_EQ(server_.command({"DEL", "a"}), "1");
  wrapper.signal(SIGKILL);
  EXPECT_TRUE(eventually([&] { return is_free("b"); })) << "long before the TTL";
}

TEST_F(CliSeveral, MaxHoldStopsTheCommand) {
  child_process wrapper{held({"--max-hold", "1s"})};
  ASSERT_FALSE(ready_numbers(wrapper).empty());
  EXPECT_EQ(wrapper.wait_exit(), exited(76));
  expect_free();
}

TEST_F(CliSeveral, OutageIsWaitedThrough) {
  server_.kill9();
  child_process wrapper{holdfast({"run", "a", "b", "--", "echo", "ran"})};
  ASSERT_TRUE(wrapper.wait_for_output("waiting for 'a', 'b': ")) << wrapper.stderr_text();
  server_.restart();
  EXPECT_EQ(wrapper.wait_exit(), exited(0)) << wrapper.stderr_text();
  EXPECT_EQ(wrapper.stdout_text(), "ran\n");
}

// ---- jobs that many hosts start ----------------------------------------------------------------

TEST_F(CliSeveral, MarkOfOnceIsTheFirstNames) {
  const auto once = [&](std::vector<std::string> names) {
    names.insert(names.begin(), "run");
    names.insert(names.end(), {"--once", "monday", "--", "echo", "ran"});
    return run(std::move(names)).out;
  };
  EXPECT_EQ(once({"job", "disk"}), "ran\n");
  EXPECT_FALSE(is_free("job:once:monday"));
  EXPECT_EQ(once({"job", "other"}), "");
  EXPECT_EQ(once({"disk", "job"}), "ran\n");
}

TEST_F(CliSeveral, SignalLeavesAllToTheirTtlWhenTheyAreOnlyKept) {
  child_process job{holdfast(
      {"run", "a", "b", "--at-least", "1h", "--", "sh", "-c", "echo ready $$ go; exit 5"})};
  const auto command = ready_numbers(job);
  ASSERT_EQ(command.size(), 1U);
  ASSERT_TRUE(eventually([&] { return !alive(command[0]); }));
  job.signal(SIGTERM);
  EXPECT_EQ(job.wait_exit(), exited(5));
  EXPECT_GT(pttl("a"), 1000);
  EXPECT_GT(pttl("b"), 1000);
}

// ---- the command line --------------------------------------------------------------------------

TEST_F(CliSeveral, WhatDoesNotCombineIsRefused) {
  const std::vector<std::vector<std::string>> kinds{
      {"--shared"}, {"--writer"}, {"--permits", "1/2"}, {"--format", "redisson"}};
  for (const auto& kind : kinds) {
    std::vector<std::string> args{"run", "a", "b", "--", "echo", "ran"};
    args.insert(args.begin() + 3, kind.begin(), kind.end());
    const auto refused = run(args);
    EXPECT_EQ(refused.exit, exited(64)) << kind.front();
    EXPECT_EQ(refused.out, "");
    EXPECT_TRUE(contains(refused.err, "several locks")) << refused.err;
  }
  // A password in a name would be shown to all who look, and the lock would be on another store.
  for (const std::string url : {"redis://u:hunter2@h", "rediss://u:hunter2@h", "unix:/redis.sock",
                                "redlock://u:hunter2@h,i,j", "redlock+tls://u:hunter2@h,i,j"}) {
    const auto refused = run({"run", "a", url, "--", "echo", "ran"});
    EXPECT_EQ(refused.exit, exited(64)) << url;
    EXPECT_TRUE(contains(refused.err, "--store")) << refused.err;
    EXPECT_FALSE(contains(refused.err, "hunter2")) << refused.err;
  }
  const auto twice = run({"run", "a", "b", "a", "--", "true"});
  EXPECT_EQ(twice.exit, exited(64));
  EXPECT_TRUE(contains(twice.err, "'a' twice")) << twice.err;
  expect_free();
}

TEST_F(CliSeveral, SoManyAtOnceAndNoMore) {
  constexpr int most = 32;
  std::vector<std::string> args{"run"};
  for (int i = 0; i < most; ++i)
    args.push_back("lock-" + std::to_string(i));
  auto more = args;
  args.insert(args.end(), {"--", "sh", "-c", "echo $HOLDFAST_LOCKS $HOLDFAST_LOCK_32"});
  const auto all = run(args);
  EXPECT_EQ(all.out, "32 lock-31\n") << all.err;
  more.insert(more.end(), {"another", "--", "echo", "ran"});
  const auto refused = run(more);
  EXPECT_EQ(refused.exit, exited(64));
  EXPECT_TRUE(contains(refused.err, "32")) << refused.err;
}

TEST_F(CliSeveral, NamesMayStartWithADash) {
  const auto result = run({"run", "--name=-a", "--name=-b", "c", "--", "sh", "-c",
                           "echo $HOLDFAST_LOCK_1 $HOLDFAST_LOCK_2 $HOLDFAST_LOCK_3"});
  EXPECT_EQ(result.out, "-a -b c\n") << result.err;
}

TEST_F(CliSeveral, CommandWithoutDashesIsNotTakenForNames) {
  const auto result = run({"run", "a", "echo", "ran"});
  EXPECT_EQ(result.exit, exited(64));
  EXPECT_TRUE(contains(result.err, "--")) << result.err;
  EXPECT_TRUE(is_free("a"));
}

}  // namespace
}  // namespace holdfast::test
