// Waiting for a lock: busy, interrupted, and on a terminal.
#include <algorithm>
#include <fstream>

#include "cli_test.hpp"

namespace holdfast::test {
namespace {

class CliWait : public cli_test {
 protected:
  // A lock held by somebody else for as long as a test can take.
  void occupy(const std::string& name) const {
    const auto result = run({"lock", name, "--ttl", "10m", "--label", "the holder"});
    ASSERT_EQ(result.exit, exited(0)) << result.err;
  }
};

// Its only child while it waits; zero if it has none yet.
pid_t guardian_of(pid_t wrapper) {
  const std::string pid = std::to_string(wrapper);
  std::ifstream children{"/proc/" + pid + "/task/" + pid + "/children"};
  pid_t guard = 0;
  children >> guard;
  return guard;
}

TEST_F(CliWait, BusyIs75AndSaysWhoHoldsIt) {
  occupy("a");
  const auto result = run({"run", "a", "--wait", "0", "--", "echo", "ran"});
  EXPECT_EQ(result.exit, exited(75));
  EXPECT_EQ(result.out, "");
  EXPECT_TRUE(contains(result.err, "holdfast: 'a' is busy: held by ")) << result.err;
  EXPECT_TRUE(contains(result.err, "the holder")) << result.err;
}

TEST_F(CliWait, BusyExitCodeCanBeChosen) {
  occupy("a");
  EXPECT_EQ(run({"run", "a", "--wait", "0", "--busy-exit", "0", "--", "true"}).exit, exited(0));
  EXPECT_EQ(run({"lock", "a", "--wait", "0", "--busy-exit", "3"}).exit, exited(3));
}

TEST_F(CliWait, WaitsForAsLongAsItIsToldTo) {
  occupy("a");
  const auto started = std::chrono::steady_clock::now();
  EXPECT_EQ(run({"run", "a", "--wait", "300ms", "--", "true"}).exit, exited(75));
  EXPECT_GE(std::chrono::steady_clock::now() - started, std::chrono::milliseconds{300});
}

TEST_F(CliWait, GetsTheLockWhenItIsGivenBack) {
  child_process holder{holdfast({"run", "a", "--", "sh", "-c", "echo ready 1 go; read x"})};
  ready_numbers(holder);
  child_process waiter{holdfast({"run", "a", "--", "sh", "-c", "echo mine; exit 4"})};
  EXPECT_FALSE(waiter.wait_for_output("mine", std::chrono::milliseconds{300}));
  holder.close_stdin();
  EXPECT_EQ(waiter.wait_exit(), exited(4));
}

TEST_F(CliWait, SaysOnceThatItWaitsWhenThereIsNoTerminal) {
  occupy("a");
  child_process waiter{holdfast({"run", "a", "--", "true"})};
  EXPECT_TRUE(waiter.wait_for_output("holdfast: waiting for 'a': held by "));
  EXPECT_TRUE(waiter.wait_for_output(" left unless renewed\n"));
  waiter.signal(SIGTERM);
  EXPECT_EQ(waiter.wait_exit(), exited(128 + SIGTERM));
  const std::string& said = waiter.stderr_text();
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1) << said;
}

TEST_F(CliWait, SaysNothingOfTheWaitIfItIsToBeQuiet) {
  occupy("a");
  child_process waiter{holdfast({"run", "a", "--wait", "1s", "--quiet", "--", "true"})};
  EXPECT_EQ(waiter.wait_exit(), exited(75));
  EXPECT_FALSE(contains(waiter.stderr_text(), "waiting"));
}

TEST_F(CliWait, WaitsThroughAnOutage) {
  server_.kill9();
  child_process waiter{holdfast({"run", "a", "--wait", "5m", "--", "echo", "ran"})};
  EXPECT_TRUE(waiter.wait_for_output("holdfast: waiting for 'a': "));
  // Longer than the library waits for a store that is away unless it is told to.
  EXPECT_FALSE(waiter.wait_exit(std::chrono::seconds{8})) << waiter.stderr_text();
  server_.restart();
  EXPECT_EQ(waiter.wait_exit(), exited(0)) << waiter.stderr_text();
  EXPECT_EQ(waiter.stdout_text(), "ran\n");
}

TEST_F(CliWait, OutageThatIsTooLongEndsTheWait) {
  server_.kill9();
  const auto result =
      run({"run", "a", "--wait", "forever", "--unreachable", "100ms", "--", "echo", "ran"});
  EXPECT_EQ(result.exit, exited(69)) << result.err;
  EXPECT_EQ(result.out, "");
}

TEST_F(CliWait, WaitingForItselfIs64) {
  const std::string inner = std::string{HOLDFAST_BINARY} + " run a -- true";
  const auto nested = run({"run", "a", "--", "sh", "-c", inner});
  EXPECT_EQ(nested.exit, exited(64)) << nested.err;
  EXPECT_TRUE(contains(nested.err, "the lock 'a'")) << nested.err;
  const auto between = run({"run", "a", "--", HOLDFAST_BINARY, "run", "b", "--", "sh", "-c",
                            std::string{HOLDFAST_BINARY} + " lock a"});
  EXPECT_EQ(between.exit, exited(64)) << between.err;
  EXPECT_TRUE(contains(between.err, "the lock 'a'")) << between.err;
}

TEST_F(CliWait, AScriptThatWaitsForWhatItLockedIs64) {
  process_options script = holdfast({});
  const std::string binary = HOLDFAST_BINARY;
  script.args = {"sh", "-c",
                 "out=$(" + binary + " lock a --ttl 10m) || exit 1; eval \"$out\"; " + binary +
                     " run b -- " + binary + " run a -- true"};
  const auto again = run_program(script);
  EXPECT_EQ(again.exit, exited(64)) << again.err;
  EXPECT_TRUE(contains(again.err, "the lock 'a'")) << again.err;
  // Once it has been given back the variables are only old.
  script.args.back() = "out=$(" + binary + " lock c) || exit 1; eval \"$out\"; " + binary +
                       " unlock c; " + binary + " run c -- true";
  EXPECT_EQ(run_program(script).exit, exited(0));
}

TEST_F(CliWait, ALockOfTheSameNameOnAnotherStoreIsAnother) {
  const redis_server other;
  const auto nested = run(
      {"run", "a", "--", HOLDFAST_BINARY, "run", "a", "--store", other.url(), "--", "echo", "ran"});
  EXPECT_EQ(nested.exit, exited(0)) << nested.err;
  EXPECT_EQ(nested.out, "ran\n");
  // Held there by another: that is busy, not a mistake.
  ASSERT_EQ(run({"lock", "a", "--store", other.url(), "--ttl", "10m"}).exit, exited(0));
  EXPECT_EQ(run({"run", "a", "--", HOLDFAST_BINARY, "run", "a", "--store", other.url(), "--wait",
                 "0", "--", "true"})
                .exit,
            exited(75));
}

TEST_F(CliWait, WhatOutlivesItsLockMayTakeItAgain) {
  const auto first = run({"run", "a", "--", "sh", "-c", "echo $HOLDFAST_HELD"});
  ASSERT_EQ(first.exit, exited(0));
  process_options later = holdfast({"run", "a", "--", "true"});
  later.env["HOLDFAST_HELD"] = first.out.substr(0, first.out.find('\n'));
  EXPECT_EQ(run_program(later).exit, exited(0));
}

TEST_F(CliWait, InterruptedWaitLeavesNothingBehind) {
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    child_process holder{holdfast({"run", "a", "--", "sh", "-c", "echo ready 1 go; read x"})};
    ready_numbers(holder);
    child_process waiter{holdfast({"run", "a", "--", "echo", "ran"})};
    // It waits once it has a guardian and asked the store; neither can be seen from here, so give
    // it a moment: too early only makes the test weaker.
    EXPECT_FALSE(waiter.wait_for_output("ran", std::chrono::milliseconds{300}));
    const pid_t guard = guardian_of(waiter.pid());
    waiter.signal(number);
    EXPECT_EQ(waiter.wait_exit(), exited(128 + number));
    EXPECT_EQ(waiter.stdout_text(), "");
    EXPECT_FALSE(guard > 0 && alive(guard));
    holder.close_stdin();
    holder.wait_exit();
    EXPECT_TRUE(is_free("a"));
    EXPECT_EQ(run({"run", "a", "--wait", "0", "--", "true"}).exit, exited(0));
  }
}

TEST_F(CliWait, KilledWaiterLeavesNoGuardianBehind) {
  occupy("a");
  child_process waiter{holdfast({"run", "a", "--", "true"})};
  pid_t guard = 0;
  ASSERT_TRUE(eventually([&] { return (guard = guardian_of(waiter.pid())) > 0; }));
  waiter.signal(SIGKILL);
  EXPECT_TRUE(eventually([&] { return !alive(guard); }));
}

TEST_F(CliWait, TellsAPersonAtATerminalWhoHoldsTheLock) {
  occupy("a");
  process_options options = holdfast({"run", "a", "--wait", "forever", "--", "true"});
  options.pty = true;
  options.env["TERM"] = "xterm";
  child_process waiter{options};
  EXPECT_TRUE(waiter.wait_for_output("holdfast: waiting for 'a': held by "));
  EXPECT_TRUE(waiter.wait_for_output("(the holder)"));
  EXPECT_TRUE(waiter.wait_for_output(" left unless renewed"));
  waiter.write_stdin("\x03");  // Ctrl-C
  EXPECT_EQ(waiter.wait_exit(), died_of(SIGINT));
}

}  // namespace
}  // namespace holdfast::test
