// `holdfast status`, `break` and `local`: who holds what, shown safely.
#include <nlohmann/json.hpp>

#include <holdfast/holdfast.hpp>

#include "cli_test.hpp"

namespace holdfast::test {
namespace {

class CliStatus : public cli_test {
 protected:
  void lock(const std::string& name, const std::string& label) const {
    const auto result = run({"lock", name, "--ttl", "10m", "--label", label, "--wait", "0"});
    ASSERT_EQ(result.exit, exited(0)) << result.err;
  }
  [[nodiscard]] nlohmann::json status_json(const std::string& what) const {
    const auto result = run({"status", what, "--json"});
    EXPECT_EQ(result.exit, exited(0)) << result.err;
    return nlohmann::json::parse(result.out);
  }
};

TEST_F(CliStatus, AFreeLockIsFree) {
  const auto result = run({"status", "a"});
  EXPECT_EQ(result.exit, exited(0));
  EXPECT_EQ(result.out, "a: free on " + server_.url() + "\n");
  const auto json = status_json("a");
  EXPECT_EQ(json.at("store"), server_.url());
  EXPECT_EQ(json.at("held"), false);
  EXPECT_TRUE(json.at("holder").is_null());
}

TEST_F(CliStatus, ShowsTheHolder) {
  child_process holder{
      holdfast({"run", "a", "--label", "nightly", "--", "sh", "-c", "echo ready 1 go; read x"})};
  ready_numbers(holder);
  const auto text = run({"status", "a"});
  EXPECT_TRUE(contains(text.out, std::to_string(holder.pid()))) << text.out;
  EXPECT_TRUE(contains(text.out, "nightly")) << text.out;

  const auto json = status_json("a");
  EXPECT_EQ(json.at("name"), "a");
  EXPECT_EQ(json.at("held"), true);
  EXPECT_GT(json.at("remaining_ms").get<std::int64_t>(), 0);
  EXPECT_EQ(json.at("holder").at("pid"), holder.pid());
  EXPECT_EQ(json.at("holder").at("label"), "nightly");
  EXPECT_FALSE(json.at("holder").at("host").get<std::string>().empty());
  EXPECT_GT(json.at("holder").at("token").get<std::uint64_t>(), 0U);
  EXPECT_TRUE(json.at("holder").at("since").get<std::string>().ends_with("Z"));
}

TEST_F(CliStatus, ShowsTheQueueInOrder) {
  child_process holder{holdfast({"run", "a", "--", "sh", "-c", "echo ready 1 go; read x"})};
  ready_numbers(holder);
  const auto waiting = [&](std::size_t count) {
    return eventually([&] { return status_json("a").at("waiting") == count; });
  };
  child_process first{holdfast({"run", "a", "--label", "one\x07", "--", "true"})};
  ASSERT_TRUE(waiting(1));
  child_process second{holdfast({"run", "a", "--label", "two", "--", "true"})};
  ASSERT_TRUE(waiting(2));

  const auto json = status_json("a");
  ASSERT_EQ(json.at("waiters").size(), 2U);
  EXPECT_EQ(json.at("waiters").at(0).at("pid"), first.pid());
  EXPECT_EQ(json.at("waiters").at(0).at("label"), "one\\x07");
  EXPECT_EQ(json.at("waiters").at(1).at("pid"), second.pid());
  EXPECT_GE(json.at("waiters").at(0).at("waited_ms").get<std::int64_t>(),
            json.at("waiters").at(1).at("waited_ms").get<std::int64_t>());
  const auto text = run({"status", "a"});
  const auto at = [&](pid_t pid) { return text.out.find("pid " + std::to_string(pid) + " ("); };
  ASSERT_NE(at(second.pid()), std::string::npos) << text.out;
  EXPECT_LT(at(first.pid()), at(second.pid())) << text.out;
  EXPECT_TRUE(contains(text.out, "has waited for")) << text.out;
}

TEST_F(CliStatus, ListsByPattern) {
  lock("orders/1", "x");
  lock("orders/2", "y");
  lock("other", "z");
  EXPECT_EQ(status_json("orders/*").size(), 2U);
  EXPECT_EQ(status_json("orders/[2-9]").at(0).at("name"), "orders/2");
  const auto all = run({"status"});
  EXPECT_EQ(all.exit, exited(0));
  EXPECT_TRUE(contains(all.out, "orders/1") && contains(all.out, "other")) << all.out;
  const auto none = run({"status", "nothing*"});
  EXPECT_EQ(none.exit, exited(0));
  EXPECT_EQ(none.out, "");
  EXPECT_TRUE(contains(all.out, "on " + server_.url())) << all.out;
  EXPECT_TRUE(contains(none.err, "on " + server_.url())) << none.err;
}

TEST_F(CliStatus, OddBytesAreShownEscaped) {
  const std::string name = "a\x1b[31mred\n\xff";
  lock(name, "label\x07");
  for (const std::vector<std::string>& args : {std::vector<std::string>{"status"},
                                               {"status", name},
                                               {"status", "--json"},
                                               {"run", name, "--wait", "0", "--", "true"}}) {
    const auto result = run(args);
    const std::string shown = result.out + result.err;
    EXPECT_TRUE(contains(shown, "[31mred")) << shown;
    EXPECT_FALSE(contains(shown, "\x1b")) << shown;
    EXPECT_FALSE(contains(shown, "\x07")) << shown;
    EXPECT_FALSE(contains(shown, "\xff")) << shown;
  }
}

TEST_F(CliStatus, AForeignHolderIsShownAsSuch) {
  EXPECT_EQ(server_.command({"SET", "a", "somebody \x1b[2J", "PX", "600000"}), "OK");
  const auto json = status_json("a");
  EXPECT_EQ(json.at("held"), true);
  EXPECT_EQ(json.at("holder").at("foreign"), true);
  const auto text = run({"status", "a"});
  EXPECT_FALSE(contains(text.out, "\x1b"));
  EXPECT_EQ(run({"run", "a", "--wait", "0", "--", "true"}).exit, exited(75));
}

TEST_F(CliStatus, ShowsWhoHasPermits) {
  client c{server_.url(), {.lock = {.label = "encoder"}}};
  const auto one = c.semaphore("slots", 4).acquire();
  auto other = c.semaphore("slots", 4).acquire(2);
  const auto text = run({"status", "slots"});
  EXPECT_TRUE(contains(text.out, "semaphore: 3 of 4 permits, 2 holders\n")) << text.out;
  EXPECT_TRUE(contains(text.out, to_string(one.token()))) << text.out;
  EXPECT_TRUE(contains(text.out, to_string(other.token()))) << text.out;
  EXPECT_TRUE(contains(run({"status"}).out, "slots")) << "in the list, too";

  const auto json = status_json("slots");
  EXPECT_EQ(json.at("kind"), "semaphore");
  EXPECT_EQ(json.at("capacity"), 4);
  EXPECT_EQ(json.at("units_in_use"), 3);
  EXPECT_EQ(json.at("holding"), 2);
  ASSERT_EQ(json.at("holders").size(), 2U);
  EXPECT_EQ(json.at("holders").at(1).at("units"), 2);
  EXPECT_EQ(json.at("holders").at(1).at("token"), other.token().value());
  EXPECT_EQ(json.at("holder"), json.at("holders").at(0));

  const auto refused = run({"break", "slots", "--token", "1"});
  EXPECT_EQ(refused.exit, exited(1));
  EXPECT_TRUE(contains(refused.err, "3 of 4 permits")) << refused.err;
  EXPECT_EQ(run({"break", "slots", "--token", to_string(other.token())}).exit, exited(0));
  EXPECT_EQ(status_json("slots").at("units_in_use"), 1);
  EXPECT_TRUE(one.held());
}

TEST_F(CliStatus, ShowsReadersAndWriters) {
  client c{server_.url()};
  {
    auto writes = c.shared_mutex("config").acquire();
    EXPECT_TRUE(contains(run({"status", "config"}).out, "shared_mutex: 1 writer\n"));
    ASSERT_TRUE(writes.release());
  }
  const auto reads = c.shared_mutex("config").acquire_shared();
  EXPECT_TRUE(contains(run({"status", "config"}).out, "shared_mutex: 1 reader\n"));
  EXPECT_EQ(status_json("config").at("kind"), "shared_mutex");
}

TEST_F(CliStatus, BreakTakesOneReadersShare) {
  client c{server_.url()};
  client other{server_.url()};
  auto one = c.shared_mutex("config").acquire_shared();
  auto two = other.shared_mutex("config").acquire_shared();
  EXPECT_EQ(run({"break", "config", "--token", to_string(one.token())}).exit, exited(0));
  EXPECT_EQ(status_json("config").at("holding"), 1);
  EXPECT_EQ(one.release().error().code, errc::lease_lost);
  EXPECT_TRUE(two.release());
  auto writes = c.shared_mutex("config").acquire();
  EXPECT_EQ(run({"break", "config", "--token", to_string(writes.token())}).exit, exited(0));
  EXPECT_EQ(writes.release().error().code, errc::lease_lost);
}

TEST_F(CliStatus, BreakComparesTheToken) {
  lock("a", "x");
  const auto token = status_json("a").at("holder").at("token").get<std::uint64_t>();
  const auto refused = run({"break", "a", "--token", std::to_string(token + 1)});
  EXPECT_EQ(refused.exit, exited(1));
  EXPECT_TRUE(contains(refused.err, std::to_string(token))) << refused.err;
  EXPECT_TRUE(contains(refused.err, "held by ")) << refused.err;
  EXPECT_FALSE(is_free("a"));

  EXPECT_EQ(run({"break", "a", "--token", std::to_string(token)}).exit, exited(0));
  EXPECT_TRUE(is_free("a"));
  EXPECT_EQ(run({"break", "a", "--token", std::to_string(token)}).exit, exited(1));
}

}  // namespace
}  // namespace holdfast::test
