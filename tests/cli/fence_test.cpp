// `holdfast fence`, and the examples that a person would start from, on real servers.
#include <filesystem>

#include <holdfast/fence.hpp>

#include "cli_test.hpp"
#include "support/postgres_server.hpp"

namespace holdfast::test {
namespace {

class CliFence : public cli_test {
 protected:
  // A command in which `holdfast` is ours.
  [[nodiscard]] run_result shell(std::vector<std::string> args) const {
    process_options options = holdfast({});
    const std::string ours = std::filesystem::path{HOLDFAST_BINARY}.parent_path();
    options.args = std::move(args);
    options.env["PATH"] = ours + ":" + std::getenv("PATH");
    return run_program(std::move(options));
  }
  const std::string examples = std::string{HOLDFAST_SOURCE_DIR} + "/examples/";
};

TEST_F(CliFence, PrintsWhatTheLibraryHas) {
  EXPECT_EQ(run({"fence", "redis"}).out, fence::redis_script());
  EXPECT_EQ(run({"fence", "postgresql"}).out, fence::postgresql_schema());
}

TEST_F(CliFence, WantsToKnowForWhat) {
  const auto result = run({"fence"});
  EXPECT_EQ(result.exit, exited(64));
  EXPECT_TRUE(contains(result.err, "subcommand")) << result.err;
  EXPECT_EQ(run({"fence", "oracle"}).exit, exited(64));
}

TEST_F(CliFence, ExampleForRedisCounts) {
  for (const std::string expected : {"1", "2"}) {
    const auto done = shell({examples + "fenced_redis.sh", server_.socket_path()});
    EXPECT_EQ(done.exit, exited(0)) << done.out << done.err;
    EXPECT_EQ(server_.command({"GET", "visits:count"}), expected);
  }
  EXPECT_GT(std::stoull(server_.command({"GET", "visits:fence"})), 1'000'000'000'000'000U);
  // A later holder has been here.
  ASSERT_EQ(server_.command({"SET", "visits:fence", "9007199254740991"}), "OK");
  const auto refused = shell({examples + "fenced_redis.sh", server_.socket_path()});
  EXPECT_EQ(refused.exit, exited(1));
  EXPECT_TRUE(contains(refused.out + refused.err, "HOLDFAST_OVERTAKEN")) << refused.err;
  EXPECT_EQ(server_.command({"GET", "visits:count"}), "2");
}

TEST_F(CliFence, ExampleForPostgresqlCounts) {
  postgres_server postgresql;
  const std::string where = postgresql.new_database();
  const auto psql = [&](std::vector<std::string> args) {
    args.insert(args.begin(), {"psql", "--no-psqlrc", "--set", "ON_ERROR_STOP=1"});
    args.push_back(where);
    return args;
  };
  const auto installed =
      shell({"sh", "-c", "holdfast fence postgresql | psql --set ON_ERROR_STOP=1 \"$0\"", where});
  ASSERT_EQ(installed.exit, exited(0)) << installed.err;
  sql_session session{where};
  const auto made = shell(psql({"--file", examples + "fenced_table.sql"}));
  ASSERT_EQ(made.exit, exited(0)) << made.err;
  std::vector<std::string> holder = psql({"--file", examples + "fenced.sql"});
  holder.insert(holder.begin(), {HOLDFAST_BINARY, "run", "counter", "--"});
  for (const std::string expected : {"1", "2"}) {
    const auto done = shell(holder);
    EXPECT_EQ(done.exit, exited(0)) << done.err;
    EXPECT_EQ(session.run("select value from counter"), expected);
  }
  session.run("select holdfast.admit('counter', 9007199254740991)");
  const auto refused = shell(holder);
  EXPECT_EQ(refused.exit, exited(3)) << "psql says that the script failed";
  EXPECT_TRUE(contains(refused.err, "overtaken")) << refused.err;
  EXPECT_EQ(session.run("select value from counter"), "2");
}

}  // namespace
}  // namespace holdfast::test
