// The command line over TLS: what its variables say, and what it says of a certificate.
#include <fstream>

#include "cli/cli_test.hpp"
#include "support/certificates.hpp"

namespace holdfast::test {

namespace {

class CliTls : public testing::Test {
 protected:
  [[nodiscard]] run_result run(std::map<std::string, std::optional<std::string>> env) const {
    env.try_emplace("HOLDFAST_STORE", "rediss://127.0.0.1:" + std::to_string(server_.port()));
    return run_program(process_options{
        .args = {HOLDFAST_BINARY, "run", "a", "--wait", "0", "--", "true"}, .env = std::move(env)});
  }

  const authority ours_{"our authority"};
  const certificate_files mine_ = ours_.issue("client");
  redis_server server_{
      {.tcp = true,
       .password = "p@ss:w/rd",
       .tls = server_tls{
           .shows = ours_.issue("server"), .authority = ours_.file(), .wants_certificate = true}}};
};

}  // namespace

TEST_F(CliTls, VariablesSayWhatTheUrlDoesNot) {
  const auto password = ours_.where().file("password");
  std::ofstream{password} << "p@ss:w/rd\n";
  std::map<std::string, std::optional<std::string>> env{{"HOLDFAST_TLS_CA", ours_.file()},
                                                        {"HOLDFAST_TLS_CERT", mine_.cert},
                                                        {"HOLDFAST_TLS_KEY", mine_.key},
                                                        {"HOLDFAST_PASSWORD_FILE", password}};
  auto result = run(env);
  EXPECT_EQ(result.exit, exited(0)) << result.err;

  env["HOLDFAST_TLS_SERVER_NAME"] = "redis.example";
  result = run(env);
  EXPECT_EQ(result.exit, exited(77)) << result.err;
  EXPECT_TRUE(contains(result.err, "not for redis.example")) << result.err;

  // What the URL says counts.
  env["HOLDFAST_STORE"] = "rediss://:p%40ss%3Aw%2Frd@127.0.0.1:" + std::to_string(server_.port()) +
                          "?server_name=localhost";
  result = run(env);
  EXPECT_EQ(result.exit, exited(0)) << result.err;
}

TEST_F(CliTls, WrongCertificatesAre77AndSayWhatIsWrong) {
  auto result = run({});
  EXPECT_EQ(result.exit, exited(77));
  EXPECT_TRUE(contains(result.err, "the authority \"our authority\"")) << result.err;
  result = run({{"HOLDFAST_TLS_CA", ours_.file()}});
  EXPECT_EQ(result.exit, exited(77));
  EXPECT_TRUE(contains(result.err, "HOLDFAST_TLS_CERT")) << result.err;
}

TEST_F(CliTls, VariableThatIsSetButEmptyIsAMistake) {
  const auto result = run({{"HOLDFAST_TLS_CA", ""}});
  EXPECT_EQ(result.exit, exited(64));
  EXPECT_TRUE(contains(result.err, "option ca")) << result.err;
}

TEST(CliTlsVariables, MeanNothingToAStoreWithoutTls) {
  const redis_server server;
  const auto result = run_program(process_options{
      .args = {HOLDFAST_BINARY, "run", "a", "--wait", "0", "--", "true"},
      .env = {{"HOLDFAST_STORE", server.url()}, {"HOLDFAST_TLS_CA", "/nonexistent"}}});
  EXPECT_EQ(result.exit, exited(0)) << result.err;
}

// A pipe can be read only once, so not for each connection.
TEST(CliPasswordFile, MayBeAPipe) {
  const redis_server server{{.tcp = true, .password = "p@ss:w/rd"}};
  const auto result =
      run_program(process_options{.args = {HOLDFAST_BINARY, "run", "a", "--wait", "0",
                                           "--password-file", "/dev/stdin", "--", "true"},
                                  .env = {{"HOLDFAST_STORE", server.tcp_url()}}},
                  "p@ss:w/rd\n");
  EXPECT_EQ(result.exit, exited(0)) << result.err;
}

}  // namespace holdfast::test
