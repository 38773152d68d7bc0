// The command on zookeeper://, for which it loads a library.
#include <nlohmann/json.hpp>

#include "cli_test.hpp"
#include "support/zookeeper_ensemble.hpp"

using namespace std::chrono_literals;

namespace holdfast::test {
namespace {

TEST(CliZookeeper, RunHoldsStatusShowsAndBreakTakes) {
  const zookeeper_ensemble one{1};
  const auto holdfast = [&](std::vector<std::string> args) {
    return holdfast_on(one.url("/locks"), std::move(args));
  };
  const auto ran =
      run_program(holdfast({"run", "report", "--", "sh", "-c", "echo $HOLDFAST_TOKEN"}));
  EXPECT_EQ(ran.exit, exited(0)) << ran.err;
  EXPECT_GT(std::stoull(ran.out), 0U);

  child_process holder{holdfast({"run", "report", "--label", "nightly", "--", "cat"})};
  const auto shown = [&] {
    const auto seen = run_program(holdfast({"status", "report", "--json"}));
    return seen.exit == exited(0) && !seen.out.empty() ? nlohmann::json::parse(seen.out)
                                                       : nlohmann::json{};
  };
  nlohmann::json status;
  ASSERT_TRUE(eventually([&] {
    status = shown();
    return status.dump().find("nightly") != std::string::npos;
  })) << status.dump();

  const auto busy = run_program(holdfast({"run", "report", "--wait", "0", "--", "true"}));
  EXPECT_NE(busy.exit, exited(0));
  const auto listed = run_program(holdfast({"status"}));
  EXPECT_TRUE(contains(listed.out, "report")) << listed.out << listed.err;
  holder.close_stdin();
  EXPECT_EQ(holder.wait_exit(), exited(0));
  const auto wrong = run_program(holdfast({"break", "report", "--token", "1"}));
  EXPECT_EQ(wrong.exit, exited(1)) << wrong.err;
}

TEST(CliZookeeper, TlsIsRefusedWithTheReason) {
  const auto refused = run_program(
      {.args = {HOLDFAST_BINARY, "status", "--store", "zookeeper+tls://127.0.0.1/locks"}});
  EXPECT_NE(refused.exit, exited(0));
  EXPECT_TRUE(contains(refused.err, "no TLS")) << refused.err;
}

}  // namespace
}  // namespace holdfast::test
