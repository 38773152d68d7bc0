// `holdfast run --once` and `--at-least`: a job that many hosts start.
#include <chrono>
#include <csignal>

#include "cli_test.hpp"
#include "support/watch.hpp"

using namespace std::chrono_literals;

namespace holdfast::test {
namespace {

class CliOnce : public cli_test {
 protected:
  [[nodiscard]] run_result once(const std::string& key, const std::string& script) const {
    return run({"run", "backup", "--once", key, "--", "sh", "-c", script});
  }
};

TEST_F(CliOnce, RunsOnceForEachKey) {
  EXPECT_EQ(once("monday", "echo ran").out, "ran\n");
  const auto again = once("monday", "echo ran");
  EXPECT_EQ(again.exit, exited(0));
  EXPECT_EQ(again.out, "");
  EXPECT_TRUE(contains(again.err, "was done already")) << again.err;
  EXPECT_TRUE(is_free("backup"));
  EXPECT_EQ(once("tuesday", "echo ran").out, "ran\n");
  EXPECT_EQ(run({"run", "other", "--once", "monday", "--", "echo", "ran"}).out, "ran\n")
      << "a key belongs to a lock";
}

TEST_F(CliOnce, KeepsTheMarkForADay) {
  EXPECT_EQ(once("monday", "true").exit, exited(0));
  constexpr long hour_ms = 3'600'000;
  EXPECT_GT(pttl("backup:once:monday"), 23 * hour_ms);
  EXPECT_LE(pttl("backup:once:monday"), 24 * hour_ms);
}

TEST_F(CliOnce, FailureLeavesNoMark) {
  EXPECT_EQ(once("monday", "exit 3").exit, exited(3));
  EXPECT_EQ(once("monday", "echo ran").out, "ran\n");
}

TEST_F(CliOnce, MarkIsSeenByTheWaiterThatComesNext) {
  child_process first{holdfast(
      {"run", "backup", "--once", "monday", "--", "sh", "-c", "echo ready $$ go; read line"})};
  ASSERT_FALSE(ready_numbers(first).empty());
  child_process second{holdfast({"run", "backup", "--once", "monday", "--", "echo", "ran"})};
  ASSERT_TRUE(second.wait_for_output("wait")) << second.stderr_text();
  first.close_stdin();
  EXPECT_EQ(first.wait_exit(), exited(1)) << "read found the end";
  EXPECT_EQ(second.wait_exit(), exited(0));
  EXPECT_EQ(second.stdout_text(), "ran\n") << "the first one failed";
}

TEST_F(CliOnce, QuorumsAndEmptyKeysAreRefused) {
  const auto quorum =
      run({"run", "backup", "--store", "redlock://a,b,c", "--once", "monday", "--", "true"});
  EXPECT_EQ(quorum.exit, exited(64));
  EXPECT_TRUE(contains(quorum.err, "--at-least")) << quorum.err;
  EXPECT_EQ(once("", "true").exit, exited(64));
}

TEST_F(CliOnce, LockIsKeptForAtLeastSoLong) {
  const auto started = std::chrono::steady_clock::now();
  EXPECT_EQ(run({"run", "backup", "--at-least", "700ms", "--", "sh", "-c", "exit 5"}).exit,
            exited(5));
  EXPECT_GE(std::chrono::steady_clock::now() - started, 700ms);
  EXPECT_TRUE(is_free("backup")) << "and not for longer";
}

TEST_F(CliOnce, SignalEndsTheKeepingAndLeavesTheLockToItsTtl) {
  child_process job{holdfast(
      {"run", "backup", "--at-least", "1h", "--", "sh", "-c", "echo ready $$ go; exit 5"})};
  const auto command = ready_numbers(job);
  ASSERT_EQ(command.size(), 1U);
  ASSERT_TRUE(eventually([&] { return !alive(command[0]); }));
  job.signal(SIGTERM);
  EXPECT_EQ(job.wait_exit(), exited(5));
  EXPECT_GT(pttl("backup"), 1000);
}

TEST_F(CliOnce, SignalThatTheCommandHeededEndsTheKeepingToo) {
  child_process job{
      holdfast({"run", "backup", "--at-least", "1h", "--", "sh", "-c",
                "trap 'exit 5' TERM; echo ready $$ go; while :; do sleep 0.05; done"})};
  ASSERT_EQ(ready_numbers(job).size(), 1U);
  job.signal(SIGTERM);
  EXPECT_EQ(job.wait_exit(), exited(5));
  EXPECT_GT(pttl("backup"), 1000);
}

}  // namespace
}  // namespace holdfast::test
