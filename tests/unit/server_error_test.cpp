// Redis' errors, word for word as servers send them, as ours.
#include "stores/redis/server_error.hpp"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace holdfast::test {

namespace {

using stores::redis::is_noscript;
using stores::redis::translate_error;
using testing::HasSubstr;
using testing::Not;

struct said_and_meant {
  std::string said;
  errc meant;
};

const std::string node = "db:6379";
const std::string sha = "104ae65debf45156ded1e8e613705534c8e62c17";
// How Redis 6 wraps what goes wrong inside a script; Redis 7 puts the script after the error.
const std::string redis_6 =
    "ERR Error running script (call to f_" + sha + "): @user_script:12: @user_script: 12: ";
const std::string redis_7 = " script: " + sha + ", on @user_script:12.";

const std::vector<said_and_meant> direct{
    {"NOAUTH Authentication required.", errc::not_authenticated},
    {"WRONGPASS invalid username-password pair or user is disabled.", errc::not_authenticated},
    {"ERR invalid password", errc::not_authenticated},
    {"ERR AUTH <password> called without any password configured for the default user. Are you "
     "sure your configuration is correct?",
     errc::not_authenticated},
    {"ERR Client sent AUTH, but no password is set", errc::not_authenticated},
    {"NOPERM this user has no permissions to run the 'evalsha' command", errc::not_permitted},
    {"LOADING Redis is loading the dataset in memory", errc::store_loading},
    {"BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.",
     errc::store_busy},
    {"OOM command not allowed when used memory > 'maxmemory'.", errc::out_of_memory},
    {"READONLY You can't write against a read only replica.", errc::read_only},
    {"MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to "
     "disk.",
     errc::read_only},
    {"NOREPLICAS Not enough good replicas to write.", errc::read_only},
    {"MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
     errc::read_only},
    {"WRONGTYPE Operation against a key holding the wrong kind of value", errc::wrong_type},
    {"MOVED 3999 127.0.0.1:6381", errc::moved},
    {"ASK 3999 127.0.0.1:6381", errc::moved},
    {"CLUSTERDOWN Hash slot not served", errc::store_unreachable},
    {"TRYAGAIN Multiple keys request during rehashing of slot", errc::store_busy},
    {"ERR max number of clients reached", errc::overloaded},
    {"ERR DB index is out of range", errc::invalid_argument},
    {"ERR unknown command 'EVALSHA'", errc::incompatible},
    {"ERR something that nobody has seen before", errc::store_refused},
    {"", errc::store_refused},
};

}  // namespace

TEST(ServerError, EachHasACodeAndNamesTheNodeAndWhatItSaid) {
  for (const auto& [said, meant] : direct) {
    const auto got = translate_error(said, node);
    EXPECT_EQ(got.code, meant) << said;
    EXPECT_THAT(got.message, HasSubstr(node));
    ASSERT_EQ(got.nodes.size(), 1U);
    EXPECT_EQ(got.nodes[0].node, node);
    EXPECT_EQ(got.nodes[0].answer, said.substr(0, 200)) << "as far as it is shown";
  }
}

TEST(ServerError, WrappedByAScriptItMeansTheSame) {
  const std::vector<said_and_meant> inside{
      {"WRONGTYPE Operation against a key holding the wrong kind of value", errc::wrong_type},
      {"-OOM command not allowed when used memory > 'maxmemory'.", errc::out_of_memory},
      {"-READONLY You can't write against a read only replica.", errc::read_only},
      {"-MISCONF Redis is configured to save RDB snapshots", errc::read_only},
      {"-NOREPLICAS Not enough good replicas to write.", errc::read_only},
  };
  for (const auto& [said, meant] : inside) {
    EXPECT_EQ(translate_error(redis_6 + said, node).code, meant) << said;
    const auto bare = said.substr(said.starts_with('-') ? 1 : 0);
    EXPECT_EQ(translate_error(bare + redis_7, node).code, meant) << bare;
  }
}

// A script may be allowed and a command inside it not: no version says NOPERM then.
TEST(ServerError, CommandThatAScriptMayNotRunIsNotPermitted) {
  const std::string command = "The user executing the script can't run this command or subcommand";
  const std::string key =
      "The user executing the script can't access at least one of the keys mentioned in the "
      "command arguments";
  for (const auto& said :
       {redis_6 + command, redis_6 + key, "ERR " + command + redis_7, "ERR " + key + redis_7,
        "ERR ACL failure in script: User app has no permissions to run the 'time' command" +
            redis_7}) {
    EXPECT_EQ(translate_error(said, node).code, errc::not_permitted) << said;
  }
}

TEST(ServerError, BugInAScriptIsNotTakenForAnythingElse) {
  EXPECT_EQ(translate_error("ERR user_script:1: Script attempted to access nonexistent global "
                            "variable 'nosuch'" +
                                redis_7,
                            node)
                .code,
            errc::store_refused);
}

TEST(ServerError, NewerLayoutSaysToUpdate) {
  for (const auto& said : {"HOLDFAST_LAYOUT 3", "ERR HOLDFAST_LAYOUT 3"}) {
    const auto got = translate_error(said, node);
    EXPECT_EQ(got.code, errc::incompatible);
    EXPECT_THAT(got.message, HasSubstr("newer Holdfast (stored layout 3,"));
    EXPECT_THAT(got.message, HasSubstr("update this program"));
  }
}

// A server that does not know HELLO or AUTH (too old, renamed, no Redis) repeats its arguments.
TEST(ServerError, PasswordThatAServerRepeatsIsNotShown) {
  for (const std::string said :
       {"ERR unknown command `HELLO`, with args beginning with: `2`, `AUTH`, `app`, `sesame`, ",
        "ERR unknown command 'AUTH', with args beginning with: 'app' 'sesame' "}) {
    const auto got = translate_error(said, node);
    EXPECT_EQ(got.code, errc::incompatible);
    EXPECT_THAT(got.message, Not(HasSubstr("sesame")));
    ASSERT_EQ(got.nodes.size(), 1U);
    EXPECT_THAT(got.nodes[0].answer, Not(HasSubstr("sesame")));
  }
}

TEST(ServerError, WhatIsShownIsPrintableAndShort) {
  const auto got = translate_error("ERR \x1b[2J\n" + std::string(10'000, '\xff'), node);
  EXPECT_THAT(got.message, HasSubstr("\\x1b[2J\\n"));
  for (const char c : got.message)
    ASSERT_TRUE(c >= ' ' && c < 0x7f);
  EXPECT_LT(got.message.size(), 1000U);
}

TEST(ServerError, DisputesOverANameNameBothSides) {
  const auto capacity = translate_error("HOLDFAST_CAPACITY 2 5", node);
  EXPECT_EQ(capacity.code, errc::invalid_argument);
  EXPECT_THAT(capacity.message, HasSubstr("2 permits, not 5"));
  EXPECT_EQ(translate_error("HOLDFAST_UNITS 3", node).code, errc::invalid_argument);
  const auto kind = translate_error("HOLDFAST_KIND permits", node);
  EXPECT_EQ(kind.code, errc::wrong_type);
  EXPECT_THAT(kind.message, HasSubstr("a semaphore"));
  EXPECT_THAT(translate_error("HOLDFAST_KIND latch", node).message, HasSubstr("a latch"));
  const auto count = translate_error("HOLDFAST_COUNT 3 4", node);
  EXPECT_EQ(count.code, errc::invalid_argument);
  EXPECT_THAT(count.message, HasSubstr("in use for 3, not 4"));
  const auto left = translate_error("HOLDFAST_LEFT 0 3", node);
  EXPECT_EQ(left.code, errc::invalid_argument);
  EXPECT_THAT(left.message, HasSubstr("all 3 have counted"));
  EXPECT_THAT(translate_error("HOLDFAST_LEFT 2 3", node).message, HasSubstr("only 2 of 3"));
  const auto other = translate_error("ERR HOLDFAST_KIND" + redis_7, node);
  EXPECT_EQ(other.code, errc::wrong_type);
  EXPECT_THAT(other.message, HasSubstr("not a lock"));
}

TEST(ServerError, ForgottenScriptIsRecognised) {
  EXPECT_TRUE(is_noscript("NOSCRIPT No matching script. Please use EVAL."));
  EXPECT_FALSE(is_noscript("ERR NOSCRIPT"));
  EXPECT_FALSE(is_noscript(""));
}

}  // namespace holdfast::test
