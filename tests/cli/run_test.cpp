// `holdfast run` when all goes well: status, environment, signals, process group.
#include <fstream>

#include "cli_test.hpp"

namespace holdfast::test {
namespace {

class CliRun : public cli_test {};

TEST_F(CliRun, ReturnsTheCommandsExitStatus) {
  EXPECT_EQ(run({"run", "a", "--", "true"}).exit, exited(0));
  EXPECT_EQ(run({"run", "a", "--", "sh", "-c", "exit 7"}).exit, exited(7));
  EXPECT_EQ(run({"run", "a", "--", "sh", "-c", "exit 255"}).exit, exited(255));
}

TEST_F(CliRun, Returns128PlusTheSignalThatEndedTheCommand) {
  EXPECT_EQ(run({"run", "a", "--", "sh", "-c", "kill -9 $$"}).exit, exited(128 + SIGKILL));
  EXPECT_EQ(run({"run", "a", "--", "sh", "-c", "kill -TERM $$"}).exit, exited(128 + SIGTERM));
}

TEST_F(CliRun, SaysAsAShellDoesThatACommandCannotBeRun) {
  const auto missing = run({"run", "a", "--", "no-such-command-here"});
  EXPECT_EQ(missing.exit, exited(127));
  EXPECT_TRUE(contains(missing.err, "no-such-command-here"));
  EXPECT_EQ(run({"run", "a", "--", "/etc/passwd"}).exit, exited(126));
  EXPECT_TRUE(is_free("a"));
}

TEST_F(CliRun, PassesArgumentsOnUntouched) {
  const auto result = run({"run", "a", "--", "printf", "%s,", "--ttl", "--", "-x", "", "--help"});
  EXPECT_EQ(result.exit, exited(0));
  EXPECT_EQ(result.out, "--ttl,--,-x,,--help,");
}

TEST_F(CliRun, PassesTheStandardStreamsThrough) {
  const auto result =
      run_program(holdfast({"run", "a", "--", "sh", "-c", "cat; echo oops >&2"}), "some input");
  EXPECT_EQ(result.out, "some input");
  EXPECT_EQ(result.err, "oops\n");
}

TEST_F(CliRun, TellsTheCommandItsLockAndToken) {
  const std::string name = "odd name/*'\n";
  const auto result =
      run({"run", name, "--", "sh", "-c", "printf '%s|%s' \"$HOLDFAST_LOCK\" \"$HOLDFAST_TOKEN\""});
  EXPECT_EQ(result.out.substr(0, name.size() + 1), name + "|");
  EXPECT_GT(std::stoull(result.out.substr(name.size() + 1)), 0U);
}

TEST_F(CliRun, TakesNamesThatLookLikeOptions) {
  const auto result = run({"run", "--name=--ttl", "--", "sh", "-c", "echo $HOLDFAST_LOCK"});
  EXPECT_EQ(result.exit, exited(0)) << result.err;
  EXPECT_EQ(result.out, "--ttl\n");
}

TEST_F(CliRun, TokensIncreaseFromRunToRun) {
  unsigned long long before = 0;
  for (int i = 0; i < 5; ++i) {
    const auto result = run({"run", "a", "--", "sh", "-c", "echo $HOLDFAST_TOKEN"});
    ASSERT_EQ(result.exit, exited(0)) << result.err;
    const auto token = std::stoull(result.out);
    EXPECT_GT(token, before);
    before = token;
  }
}

TEST_F(CliRun, HoldsTheLockWhileTheCommandRunsAndNotAfter) {
  child_process holder{holdfast({"run", "a", "--", "sh", "-c", "echo ready 1 go; read x"})};
  ready_numbers(holder);
  EXPECT_FALSE(is_free("a"));
  holder.close_stdin();
  EXPECT_EQ(holder.wait_exit(), exited(1));
  EXPECT_TRUE(is_free("a"));
}

TEST_F(CliRun, KeepsTheLockForLongerThanItsTtl) {
  child_process holder{
      holdfast({"run", "a", "--ttl", "3s", "--", "sh", "-c", "echo ready 1 go; sleep 5; exit 3"})};
  ready_numbers(holder);
  EXPECT_EQ(holder.wait_exit(), exited(3)) << holder.stderr_text();
  EXPECT_EQ(holder.stderr_text(), "");
}

TEST_F(CliRun, ForwardsSignalsToTheWholeGroup) {
  for (const auto& [name, number] : {std::pair{"TERM", SIGTERM},
                                     {"INT", SIGINT},
                                     {"HUP", SIGHUP},
                                     {"QUIT", SIGQUIT},
                                     {"USR1", SIGUSR1},
                                     {"USR2", SIGUSR2},
                                     {"WINCH", SIGWINCH}}) {
    child_process holder{holdfast({"run", "a", "--", "sh", "-c",
                                   std::string{"trap 'exit 42' "} + name +
                                       "; echo ready 1 go; while :; do sleep 0.05; done"})};
    ready_numbers(holder);
    holder.signal(number);
    EXPECT_EQ(holder.wait_exit(), exited(42)) << name << ": " << holder.stderr_text();
  }
}

TEST_F(CliRun, ForwardsStopAndContinue) {
  child_process holder{
      holdfast({"run", "a", "--", "sh", "-c", "echo ready $$ go; read x; exit 5"})};
  const auto numbers = ready_numbers(holder);
  ASSERT_EQ(numbers.size(), 1U);
  const auto state = [&] {
    std::ifstream stat{"/proc/" + std::to_string(numbers[0]) + "/stat"};
    std::string text;
    std::getline(stat, text);
    return text.substr(text.rfind(')') + 2, 1);
  };
  holder.signal(SIGTSTP);
  EXPECT_TRUE(eventually([&] { return state() == "T"; }));
  holder.signal(SIGCONT);
  EXPECT_TRUE(eventually([&] { return state() != "T"; }));
  holder.write_stdin("line\n");
  EXPECT_EQ(holder.wait_exit(), exited(5));
}

TEST_F(CliRun, RunsTheCommandInAProcessGroupOfItsOwn) {
  child_process holder{holdfast({"run", "a", "--", "sh", "-c", "echo ready $PPID $$ go; read x"})};
  const auto numbers = ready_numbers(holder);
  ASSERT_EQ(numbers.size(), 2U);
  EXPECT_EQ(::getpgid(numbers[1]), numbers[1]);
  EXPECT_EQ(::getpgid(numbers[0]), numbers[0]);
  EXPECT_NE(::getpgid(holder.pid()), numbers[1]);
  std::ifstream comm{"/proc/" + std::to_string(numbers[0]) + "/comm"};
  std::string name;
  std::getline(comm, name);
  EXPECT_EQ(name, "holdfast-guard");
}

TEST_F(CliRun, LeavesWhatTheCommandPutIntoTheBackgroundAlone) {
  const auto result =
      run({"run", "a", "--", "sh", "-c", "sleep 30 >/dev/null 2>&1 & echo ready $! go"});
  ASSERT_EQ(result.exit, exited(0));
  const pid_t background = std::stoi(result.out.substr(6));
  EXPECT_TRUE(alive(background));
  ::kill(background, SIGKILL);
  EXPECT_TRUE(is_free("a"));
}

TEST_F(CliRun, PassesIgnoredSignalsOnAsNohupExpects) {
  process_options options =
      holdfast({"run", "a", "--", "sh", "-c",
                "grep SigIgn /proc/self/status; grep SigBlk /proc/self/status"});
  const auto plain = run_program(options);
  EXPECT_TRUE(contains(plain.out, "SigIgn:\t0000000000000000")) << plain.out;
  EXPECT_TRUE(contains(plain.out, "SigBlk:\t0000000000000000")) << plain.out;
  options.args.insert(options.args.begin(), "nohup");
  const auto nohup = run_program(options);
  EXPECT_TRUE(contains(nohup.out, "SigIgn:\t0000000000000001")) << nohup.out;
}

TEST_F(CliRun, WaitsForItsCommandAlsoWhenChildrenWereIgnored) {
  process_options options = holdfast({"run", "a", "--", "sh", "-c", "exit 6"});
  options.args.insert(options.args.begin(),
                      {"python3", "-c",
                       "import os, signal, sys; signal.signal(signal.SIGCHLD, signal.SIG_IGN); "
                       "os.execv(sys.argv[1], sys.argv[1:])"});
  EXPECT_EQ(run_program(options).exit, exited(6));
}

}  // namespace
}  // namespace holdfast::test
