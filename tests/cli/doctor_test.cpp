// `holdfast doctor`, and `break --graceful`: as a person asks for them.
#include <fstream>

#include <nlohmann/json.hpp>

#include "cli_test.hpp"

namespace holdfast::test {
namespace {

class CliDoctor : public testing::Test {
 protected:
  [[nodiscard]] static run_result doctor(const std::string& url,
                                         std::vector<std::string> more = {}) {
    std::vector<std::string> args{HOLDFAST_BINARY, "doctor"};
    args.insert(args.end(), more.begin(), more.end());
    return run_program({.args = std::move(args), .env = {{"HOLDFAST_STORE", url}}});
  }
};

TEST_F(CliDoctor, SaysByItsExitCodeHowBadItIs) {
  const redis_server server{{.config = {"appendonly yes"}}};
  const auto sound = doctor(server.url());
  EXPECT_EQ(sound.exit, exited(0)) << sound.out << sound.err;
  EXPECT_EQ(sound.out, "1 of 1 servers looked at on " + server.url() + ": nothing found\n");

  ASSERT_EQ(server.command({"CONFIG", "SET", "maxmemory-policy", "allkeys-lru"}), "OK");
  const auto warned = doctor(server.url());
  EXPECT_EQ(warned.exit, exited(1));
  EXPECT_TRUE(contains(warned.out, "warning  eviction on ")) << warned.out;

  ASSERT_EQ(server.command({"CONFIG", "SET", "maxmemory", "1gb"}), "OK");
  const auto endangered = doctor(server.url());
  EXPECT_EQ(endangered.exit, exited(2));
  EXPECT_TRUE(contains(endangered.out, "danger   eviction on ")) << endangered.out;
  EXPECT_TRUE(contains(endangered.out, "-> CONFIG SET maxmemory-policy noeviction"));
}

TEST_F(CliDoctor, PrintsJson) {
  const redis_server server{{.config = {"appendonly yes", "maxmemory-policy allkeys-lru"}}};
  const auto json = nlohmann::json::parse(doctor(server.url(), {"--json"}).out);
  EXPECT_EQ(json.at("store"), server.url());
  EXPECT_EQ(json.at("servers"), 1);
  EXPECT_EQ(json.at("answered"), 1);
  ASSERT_EQ(json.at("findings").size(), 1U);
  EXPECT_EQ(json.at("findings")[0].at("about"), "eviction");
  EXPECT_EQ(json.at("findings")[0].at("severity"), "warning");
}

TEST_F(CliDoctor, SaysWhenNoServerAnswersOrThereIsNone) {
  EXPECT_EQ(doctor("unix:/nowhere/redis.sock").exit, exited(69));
  EXPECT_EQ(doctor("memory:").exit, exited(64));
  const redis_server server{{.tcp = true, .password = "secret"}};
  const auto refused = doctor("redis://:wrong@127.0.0.1:" + std::to_string(server.port()));
  EXPECT_EQ(refused.exit, exited(77));
  EXPECT_FALSE(contains(refused.err + refused.out, "wrong")) << refused.err;
}

TEST_F(CliDoctor, ShowsNoPassword) {
  const redis_server server{{.tcp = true, .password = "secret"}};
  const auto url = "redis://:secret@127.0.0.1:" + std::to_string(server.port());
  for (const auto& options : std::vector<std::vector<std::string>>{{}, {"--json"}, {"--acl"}}) {
    const auto said = doctor(url, options);
    EXPECT_FALSE(contains(said.out + said.err, "secret")) << said.out << said.err;
  }
}

// What docs/urls.md shows is what it prints.
TEST_F(CliDoctor, PrintsTheRuleThatIsDocumented) {
  const auto said = doctor("redis://db.example?prefix=app:", {"--acl", "--user", "locks"});
  EXPECT_EQ(said.exit, exited(0)) << said.err;
  std::ifstream file{HOLDFAST_SOURCE_DIR "/docs/urls.md"};
  std::string documented;
  for (std::string line; documented.empty() && std::getline(file, line);) {
    if (line.starts_with("ACL SETUSER ")) documented = line + "\n";
  }
  EXPECT_EQ(said.out, documented);
}

using CliBreakGracefully = cli_test;

TEST_F(CliBreakGracefully, LetsTheCommandStopBeforeAnotherGetsTheLock) {
  child_process holder{holdfast({"run", "a", "--", "sh", "-c",
                                 "trap 'echo stopping; exit 3' TERM; echo ready 1 go; "
                                 "while :; do read x; done"})};
  ready_numbers(holder);
  const auto status = nlohmann::json::parse(run({"status", "a", "--json"}).out);
  const std::string token = to_string(status.at("holder").at("token"));
  child_process waiter{holdfast({"run", "a", "--", "echo", "mine"})};
  const auto broken = run({"break", "a", "--token", token, "--graceful"});
  EXPECT_EQ(broken.exit, exited(0)) << broken.err;
  EXPECT_EQ(holder.wait_exit(), exited(76)) << holder.stderr_text();
  EXPECT_TRUE(contains(holder.stdout_text(), "stopping"));
  EXPECT_EQ(waiter.wait_exit(), exited(0)) << waiter.stderr_text();
}

TEST_F(CliBreakGracefully, TakesTheLockByForceAfterTheMargin) {
  const auto lock = run({"lock", "a", "--ttl", "10m", "--json"});
  const std::string token = to_string(nlohmann::json::parse(lock.out).at("token"));
  const auto broken = run({"break", "a", "--token", token, "--graceful", "--margin", "200ms"});
  EXPECT_EQ(broken.exit, exited(0)) << broken.err;
  EXPECT_TRUE(is_free("a"));
  const auto again = run({"break", "a", "--token", token, "--graceful"});
  EXPECT_EQ(again.exit, exited(1));
  EXPECT_TRUE(contains(again.err, "is free")) << again.err;
}

TEST_F(CliBreakGracefully, NeedsATokenAndGracefulForAMargin) {
  EXPECT_EQ(run({"break", "a", "--graceful"}).exit, exited(64));
  EXPECT_EQ(run({"break", "a", "--token", "1", "--margin", "1s"}).exit, exited(64));
}

}  // namespace
}  // namespace holdfast::test
