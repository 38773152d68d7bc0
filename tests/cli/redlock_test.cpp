// `holdfast redlock`, and the other verbs on a set of nodes.
#include "cli_test.hpp"
#include "support/redlock_nodes.hpp"

namespace holdfast::test {
namespace {

run_result on(const redlock_nodes& set, std::vector<std::string> args) {
  args.insert(args.begin(), HOLDFAST_BINARY);
  return run_program({.args = std::move(args), .env = {{"HOLDFAST_STORE", set.url()}}});
}

TEST(CliRedlock, NewSetIsInitialisedAndThenRuns) {
  redlock_nodes set{3, {.init = false}};
  const auto before = on(set, {"redlock", "status"});
  EXPECT_EQ(before.exit, exited(1)) << before.err;
  EXPECT_TRUE(contains(before.out, set.name(0) + "  is empty")) << before.out;

  const auto init = on(set, {"redlock", "init"});
  EXPECT_EQ(init.exit, exited(0)) << init.err;
  const auto after = on(set, {"redlock", "status", "--json"});
  EXPECT_EQ(after.exit, exited(0)) << after.err;
  EXPECT_TRUE(contains(after.out, "\"votes\":true")) << after.out;

  const auto ran = on(set, {"run", "report", "--", "sh", "-c", "echo $HOLDFAST_TOKEN"});
  EXPECT_EQ(ran.exit, exited(0)) << ran.err;
  EXPECT_GT(ran.out.size(), 10U);
  EXPECT_EQ(set.holding("report"), 0U) << "given back on every node before it ended";
}

TEST(CliRedlock, InitOfASetThatIsNotNewIsRefused) {
  redlock_nodes set{3};
  set[0].kill9();
  const auto away = on(set, {"redlock", "init"});
  EXPECT_EQ(away.exit, exited(69)) << away.err;
  set[0].restart();
  const auto used = on(set, {"redlock", "init"});
  EXPECT_EQ(used.exit, exited(1)) << used.err;
  EXPECT_TRUE(contains(used.err, "not new")) << used.err;
}

TEST(CliRedlock, OtherStoresHaveNoNodes) {
  EXPECT_EQ(
      run_program({.args = {HOLDFAST_BINARY, "redlock", "status", "--store", "memory:"}}).exit,
      exited(64));
}

}  // namespace
}  // namespace holdfast::test
