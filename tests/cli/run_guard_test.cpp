// `holdfast run` when things go wrong: whatever happens to the wrapper, the guardian or the lock,
// nothing of the command is left when the lock can become somebody else's.
#include <algorithm>

#include "cli_test.hpp"

namespace holdfast::test {
namespace {

// A TTL whose last quarter is long enough for a slow machine to look at what is left of it.
constexpr const char* ttl = "6s";

// Prints the guardian's number, its own and a child's; heeds TERM, or does not.
constexpr const char* stubborn =
    "trap '' TERM; sleep 60 & echo ready $PPID $$ $! go; while :; do sleep 1; done";
constexpr const char* obedient = "sleep 60 & echo ready $PPID $$ $! go; wait";
// Says that it got TERM and goes on.
constexpr const char* deaf =
    "trap 'echo got TERM' TERM; echo ready $PPID $$ go; while :; do sleep 0.05; done";

class CliGuard : public cli_test {
 protected:
  [[nodiscard]] process_options run_script(const char* script) const {
    return holdfast({"run", "a", "--ttl", ttl, "--", "sh", "-c", script});
  }
};

bool none_alive(const std::vector<pid_t>& pids) {
  return std::none_of(pids.begin(), pids.end(), [](pid_t pid) { return alive(pid); });
}

TEST_F(CliGuard, KilledWrapperTakesItsCommandAlong) {
  child_process wrapper{run_script(obedient)};
  const auto pids = ready_numbers(wrapper);
  ASSERT_EQ(pids.size(), 3U);
  wrapper.signal(SIGKILL);
  EXPECT_TRUE(eventually([&] { return none_alive({pids[1], pids[2]}); }));
  EXPECT_TRUE(eventually([&] { return none_alive(pids); }));  // the guardian goes too
  EXPECT_TRUE(is_free("a"));
}

TEST_F(CliGuard, GuardianOfAKilledWrapperGivesTheLockBackWhenTheCommandIsGone) {
  for (const char* script : {obedient, stubborn}) {
    child_process wrapper{holdfast({"run", "a", "--ttl", "1h", "--", "sh", "-c", script})};
    const auto pids = ready_numbers(wrapper);
    ASSERT_EQ(pids.size(), 3U);
    wrapper.signal(SIGKILL);
    EXPECT_EQ(run({"run", "a", "--wait", "25s", "--", "sh", "-c",
                   "! kill -0 " + std::to_string(pids[1]) + " 2>/dev/null"})
                  .exit,
              exited(0));
  }
}

TEST_F(CliGuard, ReapsOrphansWhenTheyAreItsOwn) {
  // As the first process of a container. The setting survives exec.
  process_options options = holdfast({});
  options.args = {"python3",
                  "-c",
                  "import ctypes, os, sys\n"
                  "ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)\n"  // PR_SET_CHILD_SUBREAPER
                  "os.execv(sys.argv[1], sys.argv[1:])",
                  HOLDFAST_BINARY,
                  "run",
                  "a",
                  "--",
                  "sh",
                  "-c",
                  "sh -c 'sleep 0.1 >/dev/null & echo ready $! go'; read x"};
  child_process wrapper{options};
  const auto pids = ready_numbers(wrapper);
  ASSERT_EQ(pids.size(), 1U);
  EXPECT_TRUE(eventually([&] { return ::kill(pids[0], 0) != 0; }));  // not even a zombie
  wrapper.close_stdin();
  EXPECT_EQ(wrapper.wait_exit(), exited(1));
}

TEST_F(CliGuard, KilledWrapperTakesAStubbornCommandAlongBeforeTheLeaseEnds) {
  child_process wrapper{run_script(stubborn)};
  const auto pids = ready_numbers(wrapper);
  ASSERT_EQ(pids.size(), 3U);
  const auto asked = std::chrono::steady_clock::now();
  const auto kept_until = asked + std::chrono::milliseconds{pttl("a")};
  wrapper.signal(SIGKILL);
  EXPECT_TRUE(eventually([&] { return none_alive({pids[1], pids[2]}); }));
  EXPECT_LT(std::chrono::steady_clock::now(), kept_until);
  EXPECT_TRUE(eventually([&] { return is_free("a"); }));
}

TEST_F(CliGuard, StoppedWrapperTakesItsCommandAlongBeforeTheLeaseEnds) {
  for (const char* script : {obedient, stubborn}) {
    child_process wrapper{run_script(script)};
    const auto pids = ready_numbers(wrapper);
    ASSERT_EQ(pids.size(), 3U);
    wrapper.signal(SIGSTOP);
    EXPECT_TRUE(eventually([&] { return none_alive({pids[1], pids[2]}); }));
    EXPECT_GT(pttl("a"), 0);
    EXPECT_TRUE(eventually([&] { return is_free("a"); }));
    wrapper.signal(SIGCONT);
    EXPECT_EQ(wrapper.wait_exit(), exited(76));
    EXPECT_TRUE(contains(wrapper.stderr_text(), "lost the lock 'a'")) << wrapper.stderr_text();
  }
}

TEST_F(CliGuard, AGrandchildThatOutlivesItsParentIsKilledToo) {
  // The leader goes at the first TERM; what it leaves behind ignores it.
  child_process wrapper{
      run_script("sh -c 'trap \"\" TERM; echo ready $$ go; while :; do sleep 1; done' & wait")};
  const auto pids = ready_numbers(wrapper);
  ASSERT_EQ(pids.size(), 1U);
  const auto asked = std::chrono::steady_clock::now();
  const auto kept_until = asked + std::chrono::milliseconds{pttl("a")};
  wrapper.signal(SIGKILL);
  EXPECT_TRUE(eventually([&] { return none_alive(pids); }));
  EXPECT_LT(std::chrono::steady_clock::now(), kept_until);
}

TEST_F(CliGuard, StopsTheCommandWhenTheLockIsDeleted) {
  child_process wrapper{run_script(deaf)};
  const auto pids = ready_numbers(wrapper);
  ASSERT_EQ(pids.size(), 2U);
  EXPECT_EQ(server_.command({"DEL", "a"}), "1");
  EXPECT_EQ(wrapper.wait_exit(), exited(76));
  EXPECT_TRUE(contains(wrapper.stdout_text(), "got TERM"));
  EXPECT_TRUE(contains(wrapper.stderr_text(), "lost the lock 'a'")) << wrapper.stderr_text();
  EXPECT_TRUE(none_alive(pids));
}

TEST_F(CliGuard, StopsTheCommandWhenTheLockIsBrokenAndLeavesTheNextHolderAlone) {
  child_process wrapper{run_script("echo ready $$ $HOLDFAST_TOKEN go; exec sleep 60")};
  wrapper.wait_for_output(" go\n");
  const std::string token = run_program(holdfast({"status", "a", "--json"})).out;
  const auto at = token.find("\"token\":") + 8;
  ASSERT_EQ(run({"break", "a", "--token", token.substr(at, token.find(',', at) - at)}).exit,
            exited(0));
  ASSERT_EQ(run({"lock", "a", "--ttl", "60s", "--wait", "0"}).exit, exited(0));
  EXPECT_EQ(wrapper.wait_exit(), exited(76));
  EXPECT_FALSE(is_free("a"));
}

TEST_F(CliGuard, StopsTheCommandInTimeWhenTheStoreDies) {
  child_process wrapper{run_script(stubborn)};
  const auto pids = ready_numbers(wrapper);
  ASSERT_EQ(pids.size(), 3U);
  // It cannot be asked while it is paused, so what it would have said is worked out.
  const auto asked = std::chrono::steady_clock::now();
  const auto kept_until = asked + std::chrono::milliseconds{pttl("a")};
  server_.pause();  // keys go on ageing, nothing can be renewed
  EXPECT_TRUE(eventually([&] { return none_alive({pids[1], pids[2]}); }));
  EXPECT_LT(std::chrono::steady_clock::now(), kept_until);
  server_.resume();
  EXPECT_EQ(wrapper.wait_exit(), exited(76));
}

TEST_F(CliGuard, MaxHoldStopsTheCommand) {
  child_process wrapper{
      holdfast({"run", "a", "--ttl", ttl, "--max-hold", "1s", "--", "sh", "-c", obedient})};
  const auto pids = ready_numbers(wrapper);
  EXPECT_EQ(wrapper.wait_exit(), exited(76));
  EXPECT_TRUE(none_alive(pids));
}

TEST_F(CliGuard, ACommandThatHeedsTermAndExitsZeroStillCountsAsLost) {
  child_process wrapper{
      run_script("trap 'exit 0' TERM; echo ready 1 go; while :; do sleep 0.05; done")};
  ready_numbers(wrapper);
  EXPECT_EQ(server_.command({"DEL", "a"}), "1");
  EXPECT_EQ(wrapper.wait_exit(), exited(76));
}

TEST_F(CliGuard, ACommandThatIsStoppedIsToldAsWell) {
  child_process wrapper{
      run_script("trap 'echo got TERM; exit 0' TERM; echo ready $$ go; kill -STOP $$; read x")};
  const auto pids = ready_numbers(wrapper);
  ASSERT_EQ(pids.size(), 1U);
  EXPECT_EQ(server_.command({"DEL", "a"}), "1");
  EXPECT_EQ(wrapper.wait_exit(), exited(76));
  EXPECT_TRUE(contains(wrapper.stdout_text(), "got TERM"));
}

TEST_F(CliGuard, LossBetweenTheLastRenewalAndTheEndIsReported) {
  child_process wrapper{run_script("echo ready 1 go; read x; exit 0")};
  ready_numbers(wrapper);
  EXPECT_EQ(server_.command({"DEL", "a"}), "1");
  wrapper.close_stdin();  // ends long before the next renewal
  EXPECT_EQ(wrapper.wait_exit(), exited(76));
}

TEST_F(CliGuard, KilledGuardianTakesTheCommandAlong) {
  child_process wrapper{run_script(stubborn)};
  const auto pids = ready_numbers(wrapper);
  ASSERT_EQ(pids.size(), 3U);
  ::kill(pids[0], SIGKILL);
  EXPECT_EQ(wrapper.wait_exit(), exited(70));
  EXPECT_TRUE(none_alive(pids));
  EXPECT_TRUE(is_free("a"));
}

TEST_F(CliGuard, StoppedGuardianDoesNotSaveTheCommand) {
  child_process wrapper{run_script(stubborn)};
  const auto pids = ready_numbers(wrapper);
  ASSERT_EQ(pids.size(), 3U);
  ::kill(pids[0], SIGSTOP);
  EXPECT_EQ(server_.command({"DEL", "a"}), "1");
  EXPECT_EQ(wrapper.wait_exit(), exited(76));
  EXPECT_TRUE(none_alive(pids));
}

TEST_F(CliGuard, StoppedGuardianAndStoreLeaveNoCommandBeyondTheLease) {
  child_process wrapper{run_script(stubborn)};
  const auto pids = ready_numbers(wrapper);
  ASSERT_EQ(pids.size(), 3U);
  ::kill(pids[0], SIGSTOP);
  const auto asked = std::chrono::steady_clock::now();
  const auto kept_until = asked + std::chrono::milliseconds{pttl("a")};
  server_.pause();
  EXPECT_TRUE(eventually([&] { return none_alive({pids[1], pids[2]}); }));
  EXPECT_LT(std::chrono::steady_clock::now(), kept_until);
  server_.resume();
  EXPECT_EQ(wrapper.wait_exit(), exited(76));
}

TEST_F(CliGuard, AFailingCommandDoesNotHideALoss) {
  child_process wrapper{run_script("echo ready 1 go; read x; exit 3")};
  ready_numbers(wrapper);
  EXPECT_EQ(server_.command({"DEL", "a"}), "1");
  wrapper.close_stdin();
  EXPECT_EQ(wrapper.wait_exit(), exited(76));
  EXPECT_TRUE(contains(wrapper.stderr_text(), "lost the lock 'a'")) << wrapper.stderr_text();
  EXPECT_TRUE(contains(wrapper.stderr_text(), "exit status 3")) << wrapper.stderr_text();
  EXPECT_FALSE(contains(wrapper.stderr_text(), "not lost")) << wrapper.stderr_text();
}

TEST_F(CliGuard, LeavesNoZombieBehind) {
  // With a parent that adopts orphans and never reaps them, as PID 1 of many containers.
  process_options options = holdfast({});
  options.args = {"python3", "-c",
                  "import ctypes, os, subprocess, sys\n"
                  "ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)\n"  // PR_SET_CHILD_SUBREAPER
                  "subprocess.run([sys.argv[1], 'run', 'a', '--', 'true'], check=True)\n"
                  "print('left:' + open('/proc/self/task/%d/children' % os.getpid()).read())",
                  HOLDFAST_BINARY};
  const auto result = run_program(options);
  EXPECT_EQ(result.exit, exited(0)) << result.err;
  EXPECT_EQ(result.out, "left:\n");
}

TEST_F(CliGuard, GuardianIgnoresWhatTerminalsAndServiceManagersSend) {
  child_process wrapper{run_script("echo ready $PPID go; read x; exit 9")};
  const auto pids = ready_numbers(wrapper);
  ASSERT_EQ(pids.size(), 1U);
  for (const int number : {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGUSR1, SIGUSR2}) {
    ::kill(pids[0], number);
  }
  wrapper.write_stdin("\n");
  EXPECT_EQ(wrapper.wait_exit(), exited(9));
}

}  // namespace
}  // namespace holdfast::test
