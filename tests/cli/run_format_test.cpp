// `holdfast run --format`: locks in the layout of Redisson.
#include <csignal>

#include <nlohmann/json.hpp>

#include "cli_test.hpp"

namespace holdfast::test {
namespace {

const std::string java = "0f8fad5b-d9cb-469f-a165-70867728950e:47";

class CliFormat : public cli_test {
 protected:
  void java_holds(const std::string& name) const {
    ASSERT_EQ(server_.command({"HSET", name, java, "1"}), "1");
    ASSERT_EQ(server_.command({"PEXPIRE", name, "60000"}), "1");
  }
};

TEST_F(CliFormat, RunsUnderRedissonsLockAndGivesItBack) {
  const auto result = run({"run", "a", "--format", "redisson", "--", "redis-cli", "-s",
                           server_.socket_path(), "TYPE", "a"});
  EXPECT_EQ(result.exit, exited(0)) << result.err;
  EXPECT_TRUE(contains(result.out, "hash")) << result.out;
  EXPECT_TRUE(is_free("a"));
}

TEST_F(CliFormat, BusyLockOfJavaIsShownByItsField) {
  java_holds("a");
  const auto result = run({"run", "a", "--format", "redisson", "--wait", "0", "--", "true"});
  EXPECT_EQ(result.exit, exited(75));
  EXPECT_TRUE(contains(result.err, java)) << result.err;
  const auto status = run({"status", "a", "--format", "redisson"});
  EXPECT_EQ(status.exit, exited(0));
  EXPECT_TRUE(contains(status.out, java)) << status.out;
}

TEST_F(CliFormat, StatusCountsTheHolder) {
  java_holds("a");
  const auto shown = run({"status", "a", "--format", "redisson", "--json"});
  const auto json = nlohmann::json::parse(shown.out);
  EXPECT_EQ(json.at("holding"), 1);
  EXPECT_EQ(json.at("holders").at(0), json.at("holder"));
  EXPECT_EQ(json.at("holder").at("value"), java);
}

TEST_F(CliFormat, BreakTakesItFromWhoeverHasIt) {
  for (const std::string format : {"redisson", "redisson-fenced", "redisson-fair"}) {
    java_holds("a");
    const auto broken = run({"break", "a", "--format", format});
    EXPECT_EQ(broken.exit, exited(0)) << broken.err;
    EXPECT_TRUE(is_free("a"));
    const auto free = run({"break", "a", "--format", format});
    EXPECT_EQ(free.exit, exited(1));
    EXPECT_TRUE(contains(free.err, "is free")) << free.err;
  }
}

TEST_F(CliFormat, BreakOfAReadWriteLockTakesItFromAllWhoHaveIt) {
  for (const std::string mode : {"read", "write"}) {
    const auto field = mode == "read" ? java : java + ":write";
    ASSERT_EQ(server_.command({"HSET", "a", "mode", mode, field, "1"}), "2");
    ASSERT_EQ(server_.command({"HSET", "a", "b" + java, "1"}), "1");
    EXPECT_EQ(run({"break", "a", "--format", "redisson-rw", "--token", "5"}).exit, exited(64));
    EXPECT_FALSE(is_free("a")) << "there are no tokens by which to choose";
    const auto broken = run({"break", "a", "--format", "redisson-rw"});
    EXPECT_EQ(broken.exit, exited(0)) << broken.err;
    EXPECT_TRUE(is_free("a"));
    const auto free = run({"break", "a", "--format", "redisson-rw"});
    EXPECT_EQ(free.exit, exited(1));
    EXPECT_TRUE(contains(free.err, "is free")) << free.err;
  }
}

TEST_F(CliFormat, BreakOfAReadWriteLockStopsItsReaders) {
  child_process wrapper{holdfast({"run", "a", "--format", "redisson-rw", "--shared", "--ttl", "6s",
                                  "--", "sh", "-c", "echo ready $$ go; exec sleep 600"})};
  ASSERT_FALSE(ready_numbers(wrapper).empty()) << wrapper.stderr_text();
  EXPECT_EQ(run({"break", "a", "--format", "redisson-rw"}).exit, exited(0));
  EXPECT_EQ(wrapper.wait_exit(), exited(76));
}

TEST_F(CliFormat, BreakStopsTheCommandThatRunsUnderIt) {
  child_process wrapper{holdfast({"run", "a", "--format", "redisson", "--ttl", "6s", "--", "sh",
                                  "-c", "echo ready $$ go; exec sleep 600"})};
  ASSERT_FALSE(ready_numbers(wrapper).empty()) << wrapper.stderr_text();
  EXPECT_EQ(run({"break", "a", "--format", "redisson"}).exit, exited(0));
  EXPECT_EQ(wrapper.wait_exit(), exited(76));
}

TEST_F(CliFormat, RedissonsLockIsBrokenOnlyWhereThatIsAskedFor) {
  java_holds("a");
  for (const std::vector<std::string>& args :
       {std::vector<std::string>{"break", "a", "--token", "5"}, {"status", "a"}}) {
    const auto result = run(args);
    EXPECT_EQ(result.exit, exited(69));
    EXPECT_TRUE(contains(result.err, "--format redisson")) << result.err;
  }
  EXPECT_EQ(run({"break", "a"}).exit, exited(64));
  EXPECT_EQ(run({"break", "a", "--format", "redisson", "--token", "5"}).exit, exited(64));
  EXPECT_FALSE(is_free("a"));
  EXPECT_EQ(server_.command({"SET", "b", "text"}), "OK");
  EXPECT_EQ(run({"break", "b", "--format", "redisson"}).exit, exited(69));
  EXPECT_FALSE(is_free("b")) << "another client's lock";
}

TEST_F(CliFormat, LockWithoutTokensSetsNone) {
  auto options =
      holdfast({"run", "a", "--format", "redisson", "--", "sh", "-c",
                "echo token=${HOLDFAST_TOKEN-none}; " HOLDFAST_BINARY " status; echo $?"});
  options.env["HOLDFAST_TOKEN"] = "5";
  const auto result = run_program(std::move(options));
  EXPECT_EQ(result.out, "token=none\n0\n") << result.err;
}

TEST_F(CliFormat, FencedTokensCount) {
  for (const std::string expected : {"1\n", "2\n"}) {
    const auto result =
        run({"run", "a", "--format", "redisson-fenced", "--", "sh", "-c", "echo $HOLDFAST_TOKEN"});
    EXPECT_EQ(result.out, expected) << result.err;
  }
}

TEST_F(CliFormat, TokenIsCountedOnAKeyThatOthersCount) {
  const auto counted = [this] {
    const auto result =
        run({"run", "a", "--fence-key", "fence", "--", "sh", "-c", "echo $HOLDFAST_TOKEN"});
    EXPECT_EQ(result.exit, exited(0)) << result.err;
    return result.out;
  };
  EXPECT_EQ(counted(), "1\n");
  EXPECT_EQ(server_.command({"INCR", "fence"}), "2");
  EXPECT_EQ(counted(), "3\n");
  // The lease's own token is what the lock is known by.
  const auto nested =
      run({"run", "a", "--fence-key", "fence", "--", HOLDFAST_BINARY, "run", "a", "--", "true"});
  EXPECT_EQ(nested.exit, exited(64)) << nested.err;
  child_process wrapper{holdfast({"run", "a", "--fence-key", "fence", "--ttl", "10m", "--", "sh",
                                  "-c", "echo ready $$ go; exec sleep 600"})};
  ASSERT_FALSE(ready_numbers(wrapper).empty()) << wrapper.stderr_text();
  wrapper.signal(SIGKILL);
  EXPECT_TRUE(eventually([&] { return is_free("a"); })) << "the guardian gives it back";
}

TEST_F(CliFormat, WhatCannotBeCountedRunsNothing) {
  EXPECT_EQ(server_.command({"SET", "fence", "text"}), "OK");
  const auto text = run({"run", "a", "--fence-key", "fence", "--", "echo", "ran"});
  EXPECT_EQ(text.exit, exited(69)) << text.err;
  EXPECT_EQ(text.out, "");
  EXPECT_TRUE(is_free("a"));
  for (const std::vector<std::string>& args :
       {std::vector<std::string>{"run", "a", "b", "--fence-key", "fence", "--", "true"},
        {"run", "a", "--shared", "--fence-key", "fence", "--", "true"}}) {
    EXPECT_EQ(run(args).exit, exited(64));
  }
}

TEST_F(CliFormat, RunThatWouldWaitForItselfIsRefused) {
  const auto result = run({"run", "a", "--format", "redisson", "--", HOLDFAST_BINARY, "run", "a",
                           "--format", "redisson", "--", "true"});
  EXPECT_EQ(result.exit, exited(64)) << result.err;
}

TEST_F(CliFormat, GuardianOfAKilledRunGivesItBack) {
  child_process wrapper{holdfast({"run", "a", "--format", "redisson", "--ttl", "10m", "--", "sh",
                                  "-c", "echo ready $$ go; exec sleep 600"})};
  ASSERT_FALSE(ready_numbers(wrapper).empty()) << wrapper.stderr_text();
  wrapper.signal(SIGKILL);
  EXPECT_TRUE(eventually([&] { return is_free("a"); })) << "long before the TTL";
}

TEST_F(CliFormat, ReadersOfRedissonsReadWriteLockRunTogetherAndItsWriterAlone) {
  const auto reading = [](std::vector<std::string> command) {
    std::vector<std::string> words{"run",      "a",      "--format", "redisson-rw",
                                   "--shared", "--wait", "0",        "--"};
    words.insert(words.end(), command.begin(), command.end());
    return words;
  };
  const std::vector<std::string> writing{"run",    "a", "--format", "redisson-rw",
                                         "--wait", "0", "--",       "true"};
  child_process reader{holdfast(reading({"sleep", "600"}))};
  ASSERT_TRUE(eventually([&] { return !is_free("a"); }));
  EXPECT_EQ(run(reading({"true"})).exit, exited(0));
  EXPECT_EQ(run(writing).exit, exited(75));
  const auto status = run({"status", "a", "--format", "redisson-rw"});
  EXPECT_TRUE(contains(status.out, "1 reader")) << status.out << status.err;
  reader.signal(SIGTERM);
  ASSERT_TRUE(eventually([&] { return is_free("a"); }));
  EXPECT_EQ(run(writing).exit, exited(0));
}

TEST_F(CliFormat, RunsUnderRedissonsFairLock) {
  const auto result = run({"run", "a", "--format", "redisson-fair", "--", "redis-cli", "-s",
                           server_.socket_path(), "TYPE", "a"});
  EXPECT_EQ(result.exit, exited(0)) << result.err;
  EXPECT_TRUE(contains(result.out, "hash")) << result.out;
  EXPECT_TRUE(is_free("a"));
}

TEST_F(CliFormat, FormatWithoutReadersRefusesThem) {
  for (const std::string side : {"--shared", "--writer"}) {
    EXPECT_EQ(run({"run", "a", side, "--format", "redisson", "--", "true"}).exit, exited(64));
    EXPECT_EQ(run({"run", "a", "--format", "redisson-fair", side, "--", "true"}).exit, exited(64));
  }
}

TEST_F(CliFormat, UnknownFormatIsAUsageError) {
  const auto result = run({"run", "a", "--format", "xml", "--", "true"});
  EXPECT_EQ(result.exit, exited(64));
  EXPECT_TRUE(contains(result.err, "redisson-fenced")) << result.err;
}

}  // namespace
}  // namespace holdfast::test
