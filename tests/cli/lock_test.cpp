// `holdfast lock`, `renew` and `unlock`, as a shell script uses them.
#include <fcntl.h>

#include <nlohmann/json.hpp>

#include "cli_test.hpp"

namespace holdfast::test {
namespace {

class CliLock : public cli_test {
 protected:
  [[nodiscard]] nlohmann::json lock(const std::string& name, const std::string& ttl) const {
    const auto result = run({"lock", name, "--ttl", ttl, "--wait", "0", "--json"});
    EXPECT_EQ(result.exit, exited(0)) << result.err;
    return nlohmann::json::parse(result.out);
  }

  // A script in which `holdfast` is the command.
  [[nodiscard]] run_result script(const std::string& text) const {
    process_options options = holdfast({});
    options.args = {"sh", "-c",
                    "holdfast() { '" + std::string{HOLDFAST_BINARY} + "' \"$@\"; }\n" + text};
    return run_program(options);
  }
};

TEST_F(CliLock, PrintsOwnerAndTokenForEval) {
  const auto result = script(
      "out=$(holdfast lock \"it's mine\" --ttl 60s) || exit\n"
      "eval \"$out\"\n"
      "echo \"$HOLDFAST_LOCK|${#HOLDFAST_OWNER}|$HOLDFAST_TOKEN\"\n"
      "holdfast renew \"$HOLDFAST_LOCK\" --ttl 90s || exit\n"
      "holdfast unlock \"$HOLDFAST_LOCK\" || exit\n"
      "echo done\n");
  EXPECT_EQ(result.exit, exited(0)) << result.err;
  EXPECT_TRUE(result.out.starts_with("it's mine|32|")) << result.out;
  EXPECT_TRUE(result.out.ends_with("done\n")) << result.out;
  EXPECT_TRUE(is_free("it's mine"));
}

TEST_F(CliLock, PrintsJson) {
  const auto json = lock("a", "60s");
  EXPECT_EQ(json.at("name"), "a");
  EXPECT_EQ(json.at("owner").get<std::string>().size(), 32U);
  EXPECT_GT(json.at("token").get<std::uint64_t>(), 0U);
  EXPECT_GT(json.at("remaining_ms").get<std::int64_t>(), 0);
}

TEST_F(CliLock, IsKeptForItsTtlAndNotRenewed) {
  static_cast<void>(lock("a", "60s"));
  EXPECT_GT(pttl("a"), 20'000);
  EXPECT_LE(pttl("a"), 60'000);
  static_cast<void>(lock("b", "500ms"));
  EXPECT_TRUE(eventually([&] { return is_free("b"); }));
}

TEST_F(CliLock, TokensIncreaseAcrossVerbs) {
  const auto first = lock("a", "60s");
  ASSERT_EQ(run({"unlock", "a", "--owner", first.at("owner")}).exit, exited(0));
  const auto between = run({"run", "a", "--", "sh", "-c", "echo $HOLDFAST_TOKEN"});
  const auto second = lock("a", "60s");
  EXPECT_LT(first.at("token").get<std::uint64_t>(), std::stoull(between.out));
  EXPECT_LT(std::stoull(between.out), second.at("token").get<std::uint64_t>());
}

TEST_F(CliLock, RenewExtendsByTheTtlGiven) {
  const auto json = lock("a", "60s");
  const auto result = run({"renew", "a", "--owner", json.at("owner"), "--token",
                           to_string(json.at("token")), "--ttl", "10m"});
  EXPECT_EQ(result.exit, exited(0)) << result.err;
  EXPECT_GT(pttl("a"), 300'000);
}

TEST_F(CliLock, RenewAndUnlockOfALockThatHasEndedSayLost) {
  const auto json = lock("a", "60s");
  EXPECT_EQ(server_.command({"DEL", "a"}), "1");
  const std::string token = to_string(json.at("token"));
  const auto renewed = run({"renew", "a", "--owner", json.at("owner"), "--token", token});
  EXPECT_EQ(renewed.exit, exited(76));
  EXPECT_TRUE(renewed.err.starts_with("holdfast: ")) << renewed.err;
  EXPECT_TRUE(is_free("a"));  // never taken again by a renewal
  EXPECT_EQ(run({"unlock", "a", "--owner", json.at("owner")}).exit, exited(76));
}

TEST_F(CliLock, UnlockNeverTakesSomebodyElsesLock) {
  const auto first = lock("a", "60s");
  ASSERT_EQ(run({"unlock", "a", "--owner", first.at("owner")}).exit, exited(0));
  static_cast<void>(lock("a", "60s"));
  EXPECT_EQ(run({"unlock", "a", "--owner", first.at("owner")}).exit, exited(76));
  EXPECT_FALSE(is_free("a"));
}

TEST_F(CliLock, OutputThatCannotBeWrittenGivesTheLockBack) {
  const auto result = script("holdfast lock a --ttl 60s >/dev/full");
  EXPECT_EQ(result.exit, exited(74));
  EXPECT_TRUE(contains(result.err, "cannot write")) << result.err;
  EXPECT_TRUE(is_free("a"));
}

TEST_F(CliLock, OwnerAndTokenAreChecked) {
  EXPECT_EQ(run({"unlock", "a"}).exit, exited(64));
  EXPECT_EQ(run({"unlock", "a", "--owner", "me"}).exit, exited(64));
  EXPECT_EQ(run({"renew", "a", "--owner", std::string(32, 'a')}).exit, exited(64));
  EXPECT_EQ(run({"renew", "a", "--owner", std::string(32, 'a'), "--token", "-1"}).exit, exited(64));
}

}  // namespace
}  // namespace holdfast::test
