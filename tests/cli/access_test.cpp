// The access rule that `doctor --acl` prints is enough for every verb, on one server and on a
// quorum.
#include <algorithm>
#include <iterator>
#include <sstream>

#include <nlohmann/json.hpp>

#include "cli_test.hpp"
#include "support/redlock_nodes.hpp"

namespace holdfast::test {
namespace {

run_result on(const std::string& url, std::vector<std::string> args) {
  args.insert(args.begin(), HOLDFAST_BINARY);
  return run_program({.args = std::move(args), .env = {{"HOLDFAST_STORE", url}}});
}

// What `doctor --acl` prints for this URL, word by word, with a password.
std::vector<std::string> printed_rule(const std::string& url) {
  const auto said = on(url, {"doctor", "--acl", "--user", "locks"});
  EXPECT_EQ(said.exit, exited(0)) << said.err;
  std::istringstream words{said.out};
  std::vector<std::string> rule{std::istream_iterator<std::string>{words}, {}};
  std::replace(rule.begin(), rule.end(), std::string{">PASSWORD"}, std::string{">secret"});
  return rule;
}

void expect_every_verb_works(const std::string& url) {
  child_process holder{
      {.args = {HOLDFAST_BINARY, "run", "a", "--", "sh", "-c", "echo ready 1 go; read x"},
       .env = {{"HOLDFAST_STORE", url}}}};
  ready_numbers(holder);
  child_process waiter{
      {.args = {HOLDFAST_BINARY, "run", "a", "--", "true"}, .env = {{"HOLDFAST_STORE", url}}}};
  EXPECT_TRUE(eventually([&] {
    const auto said = on(url, {"status", "a", "--json"});
    return said.exit == exited(0) && nlohmann::json::parse(said.out).at("waiting") == 1;
  }));
  holder.close_stdin();
  EXPECT_EQ(holder.wait_exit(), exited(1)) << holder.stderr_text();
  EXPECT_EQ(waiter.wait_exit(), exited(0)) << waiter.stderr_text();

  const auto lock = [&] {
    const auto said = on(url, {"lock", "a", "--json"});
    EXPECT_EQ(said.exit, exited(0)) << said.err;
    return nlohmann::json::parse(said.out);
  };
  const auto first = lock();
  const std::string owner = first.at("owner");
  const auto list = on(url, {"status"});
  EXPECT_TRUE(list.exit == exited(0) && contains(list.out, "\na ")) << list.out << list.err;
  const auto renewed =
      on(url, {"renew", "a", "--owner", owner, "--token", to_string(first.at("token"))});
  EXPECT_EQ(renewed.exit, exited(0)) << renewed.err;
  const auto unlocked = on(url, {"unlock", "a", "--owner", owner});
  EXPECT_EQ(unlocked.exit, exited(0)) << unlocked.err;
  const auto broken = on(url, {"break", "a", "--token", to_string(lock().at("token"))});
  EXPECT_EQ(broken.exit, exited(0)) << broken.err;
}

TEST(CliAccess, PrintedRuleIsEnoughOnOneServer) {
  const redis_server server{{.tcp = true}};
  const std::string host = "127.0.0.1:" + std::to_string(server.port());
  ASSERT_EQ(server.command(printed_rule("redis://" + host + "?prefix=app:")), "OK");
  expect_every_verb_works("redis://locks:secret@" + host + "?prefix=app:");
  EXPECT_EQ(on("redis://locks:secret@" + host, {"run", "a", "--wait", "0", "--", "true"}).exit,
            exited(77))
      << "a lock outside the prefix";
}

TEST(CliAccess, PrintedRuleWithoutAPrefixNamesAllKeys) {
  const redis_server server{{.tcp = true}};
  const std::string host = "127.0.0.1:" + std::to_string(server.port());
  ASSERT_EQ(server.command(printed_rule("redis://" + host)), "OK");
  expect_every_verb_works("redis://locks:secret@" + host);
}

TEST(CliAccess, PrintedRuleIsEnoughOnAQuorum) {
  redlock_nodes set{3};
  std::string hosts;
  for (std::size_t i = 0; i < 3; ++i)
    hosts += (i == 0 ? "" : ",") + set.name(i);
  const auto query = "?node_timeout=1000&prefix=app:";
  for (std::size_t i = 0; i < 3; ++i)
    ASSERT_EQ(set[i].command(printed_rule("redlock://" + hosts + query)), "OK");
  // A client of another prefix has let them vote.
  expect_every_verb_works("redlock://locks:secret@" + hosts + query);
}

}  // namespace
}  // namespace holdfast::test
