// The fence inside Redis: what the script lets in, refuses and runs, on a real server.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <holdfast/fence.hpp>

#include "support/redis_server.hpp"

namespace holdfast::test {

namespace {

using testing::HasSubstr;
using testing::StartsWith;

class FenceRedis : public testing::Test {
 protected:
  // EVAL with the fence first among `keys`.
  std::string run(std::vector<std::string> keys, const std::vector<std::string>& arguments) const {
    std::vector<std::string> words{"EVAL", std::string{fence::redis_script()},
                                   std::to_string(keys.size())};
    words.insert(words.end(), keys.begin(), keys.end());
    words.insert(words.end(), arguments.begin(), arguments.end());
    return server.command(words);
  }
  [[nodiscard]] std::string show(const std::string& token) const { return run({"fence"}, {token}); }
  [[nodiscard]] std::string set(const std::string& token, const std::string& value) const {
    return run({"fence", "row"}, {token, "3", "SET", "row", value});
  }
  [[nodiscard]] std::string row() const { return server.command({"GET", "row"}); }

  redis_server server;
};

TEST_F(FenceRedis, LetsTheNewestHolderInAgainAndAgain) {
  EXPECT_EQ(show("33"), "OK");
  EXPECT_EQ(show("33"), "OK");
  EXPECT_EQ(set("33", "a"), "OK");
  EXPECT_EQ(set("33", "b"), "OK");
  EXPECT_EQ(show("34"), "OK");
  EXPECT_THAT(show("33"), StartsWith("(error) HOLDFAST_OVERTAKEN by the holder with token 34"));
  EXPECT_THAT(set("33", "c"), StartsWith("(error) HOLDFAST_OVERTAKEN"));
  EXPECT_EQ(row(), "b");
}

TEST_F(FenceRedis, RefusesAWriteWhoseTokenWasNotShownBeforeTheFirstRead) {
  EXPECT_THAT(set("5", "a"), StartsWith("(error) HOLDFAST_NOT_ADMITTED"));
  ASSERT_EQ(show("5"), "OK");
  EXPECT_THAT(set("6", "a"), StartsWith("(error) HOLDFAST_NOT_ADMITTED"));
  EXPECT_EQ(row(), "(nil)");
  EXPECT_EQ(set("5", "a"), "OK") << "a write does not move the fence";
}

// What the holder has read may be as lost as the fence.
TEST_F(FenceRedis, ServerThatLostItsDataHasTheHolderReadAgain) {
  ASSERT_EQ(show("5"), "OK");
  ASSERT_EQ(server.command({"FLUSHALL"}), "OK");
  EXPECT_THAT(set("5", "a"), HasSubstr("HOLDFAST_NOT_ADMITTED"));
  ASSERT_EQ(show("5"), "OK");
  EXPECT_EQ(set("5", "a"), "OK");
}

// Neighbours at the top of what a Lua number holds exactly, which prints as 9.007199254741e+15.
TEST_F(FenceRedis, TellsTokensApartUpToTheLargest) {
  ASSERT_EQ(show("9007199254740990"), "OK");
  EXPECT_THAT(show("9007199254740989"), HasSubstr("HOLDFAST_OVERTAKEN"));
  ASSERT_EQ(show("9007199254740991"), "OK");
  EXPECT_THAT(show("9007199254740990"), HasSubstr("by the holder with token 9007199254740991"));
  EXPECT_EQ(server.command({"GET", "fence"}), "9007199254740991");
}

TEST_F(FenceRedis, FenceNeverExpires) {
  ASSERT_EQ(show("5"), "OK");
  EXPECT_EQ(server.command({"PTTL", "fence"}), "-1");
}

TEST_F(FenceRedis, RunsSeveralCommandsAtOnceAndAnswersEach) {
  ASSERT_EQ(show("5"), "OK");
  EXPECT_EQ(run({"fence", "a", "b"}, {"5", "3", "SET", "a", "1", "2", "INCR", "a", "2", "GET", "b",
                                      "4", "RPUSH", "b", "x", "y"}),
            "OK\n2\n(nil)\n2");
}

TEST_F(FenceRedis, WhatMakesNoSenseIsRefusedBeforeAnythingIsWritten) {
  for (const std::string token : {"0", "-1", "1.5", "1e3", "007", "", "abc", "9007199254740992",
                                  "99999999999999999999", " 5", "5 "}) {
    EXPECT_THAT(show(token), StartsWith("(error) HOLDFAST_TOKEN")) << token;
  }
  EXPECT_THAT(run({}, {"5"}), HasSubstr("HOLDFAST_FENCE"));
  EXPECT_THAT(run({"fence"}, {}), HasSubstr("HOLDFAST_FENCE"));
  ASSERT_EQ(server.command({"SET", "taken", "x"}), "OK");
  EXPECT_THAT(run({"taken"}, {"5"}), HasSubstr("a key of its own"));
  EXPECT_EQ(server.command({"GET", "taken"}), "x");
  ASSERT_EQ(show("5"), "OK");
  for (const std::vector<std::string>& after : {std::vector<std::string>{"4", "SET", "row", "a"},
                                                {"0"},
                                                {"SET", "row", "a"},
                                                {"3"},
                                                {"1001", "SET", "row"},
                                                {"3", "SET", "row", "a", "2", "GET"}}) {
    std::vector<std::string> arguments{"5"};
    arguments.insert(arguments.end(), after.begin(), after.end());
    EXPECT_THAT(run({"fence", "row"}, arguments), HasSubstr("HOLDFAST_COMMAND"));
  }
  EXPECT_EQ(row(), "(nil)");
}

}  // namespace

}  // namespace holdfast::test
