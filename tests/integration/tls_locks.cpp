// Locks over TLS: everything that they are without it, also when connections and secrets change.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <holdfast/holdfast.hpp>
#include <holdfast/redlock.hpp>

#include "support/certificates.hpp"
#include "support/holder_process.hpp"
#include "support/open_client.hpp"
#include "support/redis_server.hpp"
#include "support/redlock_nodes.hpp"
#include "support/watch.hpp"

using namespace std::chrono_literals;

namespace holdfast::test {

namespace {

using testing::HasSubstr;
using testing::Not;

class TlsLocks : public testing::Test {
 protected:
  TlsLocks() : server_{with_tls()} {}

  [[nodiscard]] redis_server_options with_tls() const {
    return {.tcp = true,
            .tls = server_tls{.shows = ours_.issue("server"), .authority = ours_.file()}};
  }
  [[nodiscard]] std::string url(const std::string& query = {}) const {
    return server_.tcp_url() + (query.empty() ? "" : "&" + query);
  }
  // Every connection but the one that says so.
  void cut_all_connections() {
    (void)server_.command({"CLIENT", "KILL", "TYPE", "normal"});
    (void)server_.command({"CLIENT", "KILL", "TYPE", "pubsub"});
  }
  [[nodiscard]] std::string password_file(const std::string& password) const {
    const auto path = ours_.where().file("password");
    const auto fresh = path + ".new";
    std::ofstream{fresh} << password << '\n';
    std::filesystem::rename(fresh, path);
    return path;
  }

  const authority ours_{"our authority"};
  redis_server server_;
};

}  // namespace

TEST_F(TlsLocks, ReleaseHandsOverToAWaiterInAnotherProcess) {
  holder_process first{url(), "orders", 60s};
  holder_process second{url(), "orders", 60s, holder_process::environment{}};
  client looks{url()};
  ASSERT_TRUE(eventually([&] { return looks.status("orders").waiting == 1; }));
  first.tell("release");
  second.await_held();
  EXPECT_GT(second.token(), first.token());
}

// Also the connection of renewals and the inbox, on which a waiter hears of its grant.
TEST_F(TlsLocks, LeaseAndWaiterOutliveTheirConnections) {
  client holds{url(), {.lock = {.ttl = 5s}}};
  client waits{url()};
  auto lease = holds.mutex("orders").acquire();
  std::jthread waiter{[&] {
    auto mutex = waits.mutex("orders");
    EXPECT_TRUE(mutex.try_acquire(patience));
  }};
  ASSERT_TRUE(eventually([&] { return holds.status("orders").waiting == 1; }));
  for (int i = 0; i < 3; ++i) {
    cut_all_connections();
    EXPECT_TRUE(eventually([&] {
      try {
        return lease.renew().has_value();
      } catch (const error&) {
        return false;
      }
    }));
  }
  let_pass(5s);
  EXPECT_TRUE(lease.held());
  EXPECT_TRUE(lease.release());
}

TEST_F(TlsLocks, ServerThatIsStartedAnewIsFoundAgain) {
  client c{url(), {.operation_timeout = 20s}};
  auto mutex = c.mutex("orders");
  EXPECT_TRUE(mutex.try_acquire());
  server_.kill9();
  server_.restart();
  EXPECT_TRUE(mutex.try_acquire(patience));
}

// The child has a copy of the session: a byte from it would end the parent's connection.
TEST_F(TlsLocks, ChildOfForkLeavesTheParentsSessionAlone) {
  auto c = std::make_unique<client>(url());
  auto lease = c->mutex("orders").acquire();
  const auto connections = [&] { return server_.info("stats", "total_connections_received"); };
  const auto before = std::stoul(connections());
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const bool refused = thrown_by([&] { (void)c->mutex("other").try_acquire(); }) == errc::forked;
    { const auto dropped = std::move(lease); }
    c.reset();
    ::_exit(refused ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(lease.renew());
  EXPECT_TRUE(lease.release());
  // Every INFO is a connection; no other was made.
  EXPECT_EQ(std::stoul(connections()), before + 1);
}

TEST_F(TlsLocks, UserOfAnAccessRuleLogsIn) {
  (void)server_.command({"ACL", "SETUSER", "locks", "on", ">secret", "~*", "&*", "+@all"});
  (void)server_.command({"ACL", "SETUSER", "default", "off"});
  const auto as = [&](const std::string& user) {
    auto text = url();
    return text.replace(0, 9, "rediss://" + user + "@");
  };
  {
    client c{as("locks:secret")};
    EXPECT_TRUE(c.mutex("orders").try_acquire());
  }
  std::string said;
  client wrong{as("locks:hunter2")};
  EXPECT_EQ(thrown_by([&] { (void)wrong.mutex("orders").try_acquire(); }, &said),
            errc::not_authenticated);
  EXPECT_THAT(said, Not(HasSubstr("hunter2")));
}

TEST_F(TlsLocks, ChangedPasswordFileIsReadForTheNextConnection) {
  (void)server_.command({"ACL", "SETUSER", "locks", "on", ">first", "~*", "&*", "+@all"});
  const auto path = password_file("first");
  auto text = url("password_file=" + path);
  client c{text.replace(0, 9, "rediss://locks@"), {.operation_timeout = 20s}};
  auto lease = c.mutex("orders").acquire();
  (void)server_.command({"ACL", "SETUSER", "locks", "resetpass", ">second"});
  (void)password_file("second");
  cut_all_connections();
  EXPECT_TRUE(eventually([&] { return lease.renew().has_value(); }));
  EXPECT_TRUE(lease.release());
}

TEST_F(TlsLocks, ReplacedCertificatesAreReadForTheNextConnection) {
  const authority next{"the next authority"};
  const auto believed = ours_.where().file("believed.pem");
  std::filesystem::copy_file(ours_.file(), believed);
  client c{"rediss://127.0.0.1:" + std::to_string(server_.port()) + "?ca=" + believed,
           {.operation_timeout = 20s}};
  auto mutex = c.mutex("orders");
  EXPECT_TRUE(mutex.try_acquire());
  auto held = c.mutex("held all the time").acquire();

  const auto shown = next.issue("server");
  EXPECT_EQ(
      server_.command({"CONFIG", "SET", "tls-cert-file", shown.cert, "tls-key-file", shown.key}),
      "OK");
  cut_all_connections();
  std::string said;
  // A request that leaves on a connection while the server closes it has no known outcome.
  EXPECT_TRUE(eventually([&] {
    return thrown_by([&] { (void)mutex.try_acquire(); }, &said) == errc::not_trusted;
  })) << said;
  EXPECT_THAT(said, HasSubstr("the next authority"));

  // Half of a file is no reason to forget what was believed before.
  std::ofstream{believed} << "-----BEGIN CERTIFICATE-----\nMIIB";
  EXPECT_EQ(thrown_by([&] { (void)mutex.try_acquire(); }), errc::not_trusted);
  std::filesystem::copy_file(next.file(), believed,
                             std::filesystem::copy_options::overwrite_existing);
  EXPECT_TRUE(
      eventually([&] { return thrown_by([&] { EXPECT_TRUE(mutex.try_acquire()); }) == errc{}; }));
  EXPECT_TRUE(held.renew());
  EXPECT_TRUE(held.release());
}

class TlsRedlock : public testing::Test {
 protected:
  [[nodiscard]] redlock_nodes_options with_tls() const {
    return {.node = {.tcp = true,
                     .tls = server_tls{.shows = ours_.issue("server"), .authority = ours_.file()}}};
  }
  const authority ours_{"our authority"};
};

TEST_F(TlsRedlock, HandsOverBetweenProcesses) {
  redlock_nodes nodes{3, with_tls()};
  holder_process first{nodes.url(), "orders", 30s};
  holder_process second{nodes.url(), "orders", 30s, holder_process::environment{}};
  client looks{nodes.url()};
  ASSERT_TRUE(eventually([&] { return looks.status("orders").waiting == 1; }));
  first.tell("release");
  second.await_held();
  EXPECT_GT(second.token(), first.token());
}

TEST_F(TlsRedlock, NodeWithAWrongCertificateIsOneThatIsAway) {
  redlock_nodes nodes{3, with_tls()};
  const authority wrong{"another authority"};
  const auto shown = wrong.issue("server");
  const auto show_wrong = [&](std::size_t i) {
    EXPECT_EQ(
        nodes[i].command({"CONFIG", "SET", "tls-cert-file", shown.cert, "tls-key-file", shown.key}),
        "OK");
  };
  show_wrong(0);
  {
    client c{nodes.url()};
    EXPECT_TRUE(c.mutex("orders").try_acquire());
  }
  const auto all = redlock::status(nodes.url(), 20s);
  ASSERT_TRUE(all) << all.error().message;
  EXPECT_THAT(all->at(0).description, HasSubstr("another authority"));

  show_wrong(1);
  client c{nodes.url()};
  try {
    (void)c.mutex("orders").try_acquire();
    FAIL() << "one node is no majority";
  } catch (const error& e) {
    EXPECT_TRUE(std::ranges::any_of(e.nodes(), [](const node_answer& one) {
      return one.answer.find("another authority") != std::string::npos;
    })) << e.what();
  }
}

}  // namespace holdfast::test
