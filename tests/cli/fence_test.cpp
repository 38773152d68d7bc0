// `holdfast fence`, and the examples that a person would start from, on real servers.
#include <cstdlib>
#include <filesystem>

#include <holdfast/fence.hpp>

#include "cli_test.hpp"
#include "support/etcd_server.hpp"
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

TEST_F(CliFence, ExampleForEtcdCounts) {
  const etcd_server etcd;
  for (const std::string expected : {"1\n", "2\n"}) {
    const auto done = shell({examples + "fenced_etcd.sh", etcd.endpoint()});
    EXPECT_EQ(done.exit, exited(0)) << done.err;
    EXPECT_EQ(etcd.get("visits/count"), expected);
  }
  EXPECT_EQ(etcd.get("visits/fence").size(), 17U) << "16 digits and the end of the line";
  ASSERT_EQ(etcd.run("put visits/fence 9007199254740991").exit, exited(0));
  const auto refused = shell({examples + "fenced_etcd.sh", etcd.endpoint()});
  EXPECT_EQ(refused.exit, exited(1));
  EXPECT_TRUE(contains(refused.err, "overtaken")) << refused.err;
  EXPECT_EQ(etcd.get("visits/count"), "2\n");
}

// What docs/fences.md says of data that is in the same etcd as the lock.
TEST_F(CliFence, EtcdComparesTheLocksOwnKey) {
  const etcd_server etcd;
  const std::string write = R"(lock orders -- sh -c 'printf "%s\n\nput row %s\n\n\n\n" )"
                            R"("version(\"$ETCD_LOCK_KEY\") > \"0\"" "$1" | etcdctl txn' - )";
  EXPECT_TRUE(contains(etcd.run(write + "held").out, "SUCCESS"));
  EXPECT_EQ(etcd.get("row"), "held\n");
  // As a person breaks a lock, or the lease ends while the holder is paused.
  const std::string late =
      R"(lock orders -- sh -c 'etcdctl del "$ETCD_LOCK_KEY"; printf "%s\n\nput row late\n\n\n\n" )"
      R"("version(\"$ETCD_LOCK_KEY\") > \"0\"" | etcdctl txn')";
  EXPECT_TRUE(contains(etcd.run(late).out, "FAILURE"));
  EXPECT_EQ(etcd.get("row"), "held\n");
}

}  // namespace
}  // namespace holdfast::test
