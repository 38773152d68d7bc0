// The command on etcd://, which it loads: as on every other store.
#include "cli_test.hpp"
#include "support/etcd_cluster.hpp"

namespace holdfast::test {

class EtcdCommand : public testing::Test {
 protected:
  [[nodiscard]] process_options holdfast(std::vector<std::string> args) const {
    return holdfast_on(cluster_.url(), std::move(args));
  }
  [[nodiscard]] run_result run(std::vector<std::string> args) const {
    return run_program(holdfast(std::move(args)));
  }

  etcd_cluster cluster_{{.members = 1}};
};

TEST_F(EtcdCommand, RunStatusBreakLockAndUnlockWork) {
  child_process holds{holdfast({"run", "orders", "--label", "night", "--", "sh", "-c",
                                "echo token $HOLDFAST_TOKEN; exec sleep 60"})};
  ASSERT_TRUE(holds.wait_for_output("token "));
  const auto token = holds.stdout_text().substr(6, holds.stdout_text().find('\n') - 6);

  const auto all = run({"status"});
  EXPECT_EQ(all.exit, exited(0)) << all.err;
  EXPECT_TRUE(contains(all.out, "orders") && contains(all.out, "night")) << all.out;
  EXPECT_EQ(run({"run", "orders", "--wait", "0", "--", "true"}).exit, exited(75));

  EXPECT_EQ(run({"break", "orders", "--token", "1"}).exit, exited(1));
  const auto broken = run({"break", "orders", "--token", token});
  EXPECT_EQ(broken.exit, exited(0)) << broken.err;
  EXPECT_EQ(holds.wait_exit(), exited(76)) << holds.stderr_text();

  const auto locked = run({"lock", "orders", "--ttl", "60s"});
  ASSERT_EQ(locked.exit, exited(0)) << locked.err;
  const auto set =
      run_program({.args = {"sh", "-c", locked.out + "\"$0\" renew orders && \"$0\" unlock orders",
                            HOLDFAST_BINARY},
                   .env = {{"HOLDFAST_STORE", cluster_.url()}}});
  EXPECT_EQ(set.exit, exited(0)) << set.err;
  EXPECT_EQ(cluster_.keys("orders/"), 0U);
}

TEST_F(EtcdCommand, ServerThatIsAwayIsNamed) {
  cluster_.kill9(0);
  const auto got = run({"run", "orders", "--wait", "0", "--", "true"});
  EXPECT_EQ(got.exit, exited(69));
  EXPECT_TRUE(contains(got.err, "127.0.0.1:" + std::to_string(cluster_.port(0)))) << got.err;
}

}  // namespace holdfast::test
