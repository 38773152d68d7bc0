// Scenarios 22 and 42: a master that Sentinels watch dies, falls silent or is replaced, while
// clients hold, wait, renew and release.
#include <array>
#include <atomic>
#include <fstream>
#include <optional>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <holdfast/holdfast.hpp>

#include "runtime/clock.hpp"
#include "support/certificates.hpp"
#include "support/fault_proxy.hpp"
#include "support/if_granted.hpp"
#include "support/open_client.hpp"
#include "support/sentinel_group.hpp"
#include "support/watch.hpp"

using namespace std::chrono_literals;

namespace holdfast::test {

namespace {

using testing::HasSubstr;

class SentinelFailover : public testing::Test {
 protected:
  // A TTL that outlives the test: what is renewed meanwhile is renewed because of the failover.
  [[nodiscard]] client made(client_options options = {}) const {
    options.lock.ttl = 60s;
    options.unreachable_limit = 30s;
    // A release that was under way when the master died gets through to the next one.
    options.release_budget = 30s;
    return client{group.url(), std::move(options)};
  }
  [[nodiscard]] bool has(std::size_t server, const std::string& key) {
    return group.server(server).command({"EXISTS", key}) == "1";
  }

  sentinel_group group;
};

}  // namespace

TEST_F(SentinelFailover, LeaseThatTheReplicaHasGoesOnThere) {
  const auto seen = std::make_shared<recorder>();
  client c = made({.observer = seen});
  lease held = c.mutex("orders").acquire();
  ASSERT_TRUE(group.await_replicated(0));
  const auto renewals = seen->count(event::kind::renewed);
  group.server(0).kill9();
  ASSERT_TRUE(group.await_master(1));
  EXPECT_TRUE(seen->await(event::kind::renewed, renewals + 1)) << "checked at once";
  EXPECT_TRUE(held.held());
  EXPECT_FALSE(c.mutex("orders").try_acquire());
  EXPECT_TRUE(held.release());
  EXPECT_FALSE(has(1, "orders"));
}

// The old master is there and says nothing: no connection breaks.
TEST_F(SentinelFailover, SilentMasterIsLeftAndItsLeaseGoesOn) {
  const auto seen = std::make_shared<recorder>();
  client c = made({.observer = seen});
  lease held = c.mutex("orders").acquire();
  lease done = c.mutex("done").acquire();
  ASSERT_TRUE(group.await_replicated(0));
  const auto renewals = seen->count(event::kind::renewed);
  group.server(0).pause();
  // It says so if the failover takes longer than one call may, and goes on in the background.
  std::thread releaser{[&] { (void)done.release(); }};
  EXPECT_TRUE(group.await_master(1));
  releaser.join();
  EXPECT_TRUE(eventually([&] { return !has(1, "done"); }));
  EXPECT_TRUE(seen->await(event::kind::renewed, renewals + 1));
  EXPECT_TRUE(held.held());
  client other = made();
  EXPECT_FALSE(other.mutex("orders").try_acquire()) << "nor is it free to others";
  EXPECT_TRUE(held.release());
  const lease after = other.mutex("orders").acquire();
  EXPECT_GT(after.token(), held.token());
  group.server(0).resume();
  EXPECT_TRUE(eventually([&] { return group.role_of(0) == "slave"; }));
  EXPECT_TRUE(after.held());
}

// By a person's command: the old master lives, and becomes a replica of the new one.
TEST_F(SentinelFailover, MasterThatIsReplacedIsLeft) {
  client c = made();
  lease held = c.mutex("orders").acquire();
  ASSERT_TRUE(group.await_replicated(0));
  ASSERT_EQ(group.fail_over(), 1U);
  ASSERT_TRUE(eventually([&] {
    const auto got = if_granted(c, "other");
    return got && has(1, "other");
  }));
  EXPECT_TRUE(held.held());
  EXPECT_TRUE(held.release());
  EXPECT_TRUE(eventually([&] { return !has(1, "orders"); }));
}

// A replica that does not hear the master any more, and is promoted as it is.
TEST_F(SentinelFailover, LeaseThatTheReplicaHasNotIsToldLostAtOnce) {
  client c = made();
  // Connected before: what is to be fast is the loss.
  { const lease warm = c.mutex("warm").acquire(); }
  ASSERT_TRUE(group.await_replicated(0));
  ASSERT_EQ(group.server(1).command({"REPLICAOF", "127.0.0.1", "1"}), "OK");
  lease held = c.mutex("orders").acquire();
  group.server(0).kill9();
  watched_token lost{held.lost()};
  ASSERT_TRUE(group.await_master(1));
  EXPECT_TRUE(lost.wait(15s)) << "long before a third of the TTL is over";
  EXPECT_EQ(held.why_lost(), loss::deleted);
  const lease next = made().mutex("orders").acquire();
  EXPECT_GT(next.token(), held.token()) << "by a master that never knew the first";
}

TEST_F(SentinelFailover, WaiterIsHandedTheLockByTheNewMaster) {
  client holder = made();
  client waiting = made();
  lease held = holder.mutex("orders").acquire();
  std::atomic<bool> granted{false};
  fencing_token token;
  std::thread waiter{[&] {
    const lease got = waiting.mutex("orders").acquire(60s);
    token = got.token();
    granted = true;
  }};
  EXPECT_TRUE(eventually([&] { return holder.status("orders").waiting == 1; }));
  EXPECT_TRUE(group.await_replicated(0));
  group.server(0).pause();
  EXPECT_TRUE(group.await_master(1));
  EXPECT_TRUE(eventually([&] { return holder.status("orders").waiting == 1; }));
  EXPECT_FALSE(granted);
  EXPECT_TRUE(held.release());
  waiter.join();
  EXPECT_GT(token, held.token());
}

// Scenario: master and Sentinel on one host, which is gone, without a word.
TEST_F(SentinelFailover, HostThatWasMasterAndSentinelIsSurvived) {
  client c = made();
  lease held = c.mutex("orders").acquire();
  ASSERT_TRUE(group.await_replicated(0));
  group.server(0).pause();
  group.sentinel(0).pause();
  ASSERT_TRUE(eventually([&] { return group.master_of(1) == 1 && group.master_of(2) == 1; }));
  EXPECT_TRUE(c.mutex("other").try_acquire(20s));
  EXPECT_TRUE(held.held());
  // Nor does one who comes now have to know which host that was.
  client late = made();
  EXPECT_FALSE(late.mutex("orders").try_acquire());
  EXPECT_TRUE(held.release());
}

// Whoever asks after another was granted gets a higher token, whatever the master forgot.
TEST_F(SentinelFailover, TokensRiseUnderLoadWhileTheMasterIsKilled) {
  constexpr std::size_t threads = 4;
  std::array<std::atomic<std::uint64_t>, threads / 2> granted{};
  std::atomic<bool> over{false};
  std::atomic<int> turns{0};
  std::atomic<int> repeated{0};
  client first = made();
  client second = made();
  std::vector<std::thread> all;
  for (std::size_t i = 0; i < threads; ++i) {
    all.emplace_back([&, i] {
      auto& highest = granted.at(i / 2);
      auto lock = (i % 2 == 0 ? first : second).mutex("orders/" + std::to_string(i / 2));
      while (!over) {
        try {
          const auto before = highest.load();
          const lease held = lock.acquire(20s);
          const auto token = held.token().value();
          if (token <= before) ++repeated;
          auto seen = highest.load();
          while (seen < token && !highest.compare_exchange_weak(seen, token)) {
          }
          ++turns;
        } catch (const error& e) {
          // What was under way when the master died. Anything else would have been waited out.
          EXPECT_EQ(e.code(), condition::outcome_unknown) << e.what();
        }
      }
    });
  }
  EXPECT_TRUE(eventually([&] { return turns > 200; }));
  group.server(0).kill9();
  EXPECT_TRUE(group.await_master(1));
  const int then = turns;
  EXPECT_TRUE(eventually([&] { return turns > then + 200; })) << "service goes on";
  over = true;
  for (auto& one : all)
    one.join();
  EXPECT_EQ(repeated, 0);
}

// The master lives, and goes on granting to those on its side; to Sentinels it is dead. Made by a
// rule that denies them their PING.
TEST_F(SentinelFailover, MasterThatIsCutOffIsLeftAndItsTokensAreOvertaken) {
  client c = made();
  client behind{"redis://127.0.0.1:" + std::to_string(group.server(0).port()),
                {.lock = {.ttl = 60s}}};
  lease held = c.mutex("orders").acquire();
  ASSERT_TRUE(group.await_replicated(0));
  ASSERT_EQ(group.server(0).command({"ACL", "SETUSER", "default", "-ping"}), "OK");
  ASSERT_TRUE(group.await_master(1));
  const lease late = behind.mutex("papers").acquire();
  ASSERT_EQ(group.role_of(0), "master");

  // The client that listens to Sentinels leaves a master that answers as if nothing had happened.
  std::optional<lease> next;
  ASSERT_TRUE(eventually([&] { return (next = if_granted(c, "papers")).has_value(); }));
  EXPECT_EQ(group.server(1).command({"EXISTS", "papers"}), "1");
  ASSERT_TRUE(late.held()) << "two believe that they hold it";
  EXPECT_GT(next->token(), late.token()) << "and the resource knows which of them is late";
  EXPECT_TRUE(held.held());
  EXPECT_TRUE(held.release());
  EXPECT_EQ(group.server(1).command({"EXISTS", "orders"}), "0");
}

// ---- what Sentinels say ------------------------------------------------------------------------

TEST_F(SentinelFailover, SentinelThatIsBehindIsNotBelieved) {
  fault_proxy behind{group.sentinel(0).where_tcp(), fault_proxy::listen_on::tcp};
  const auto port = std::to_string(group.server(0).port());
  const auto bulk = [](const std::string& text) {
    return "$" + std::to_string(text.size()) + "\r\n" + text + "\r\n";
  };
  // As it was before the failover: the old address, the old epoch.
  behind.inject(fault::answer, "GET-MASTER-ADDR", 1000, "*2\r\n" + bulk("127.0.0.1") + bulk(port));
  behind.inject(fault::answer, "MASTER\r\n", 1000, "*2\r\n" + bulk("config-epoch") + bulk("0"));
  ASSERT_EQ(group.fail_over(), 1U);
  ASSERT_TRUE(group.await_master(1));
  const auto sentinels =
      behind.url().substr(8) + ",127.0.0.1:" + std::to_string(group.sentinel(1).port());
  client c{"redis+sentinel://" + sentinels + "/" + sentinel_group::master_name};
  const lease held = c.mutex("orders").acquire();
  EXPECT_GE(behind.seen("GET-MASTER-ADDR"), 1U);
  EXPECT_TRUE(has(1, "orders"));
}

TEST_F(SentinelFailover, KnownMasterIsUsedWithoutSentinels) {
  client c = made();
  { const lease warm = c.mutex("orders").acquire(); }
  for (std::size_t i = 0; i < group.sentinels(); ++i)
    group.sentinel(i).kill9();
  (void)group.server(0).command({"CLIENT", "KILL", "TYPE", "normal"});
  EXPECT_TRUE(c.mutex("orders").try_acquire(10s));
}

TEST_F(SentinelFailover, ErrorsSayWhatToDo) {
  std::string said;
  const auto sentinel = "127.0.0.1:" + std::to_string(group.sentinel(0).port());
  const auto server = "127.0.0.1:" + std::to_string(group.server(0).port());
  const auto tried = [&](const std::string& url) {
    return thrown_by([&] { (void)client{url}.mutex("orders").try_acquire(); }, &said);
  };
  EXPECT_EQ(tried("redis+sentinel://" + sentinel + "/other"), errc::store_refused);
  EXPECT_THAT(said, HasSubstr("knows no master \"other\""));
  EXPECT_EQ(tried("redis+sentinel://" + server + "/x"), errc::incompatible);
  EXPECT_THAT(said, HasSubstr("is no Sentinel"));
  EXPECT_EQ(tried("redis://" + sentinel), errc::incompatible);
  EXPECT_THAT(said, HasSubstr("redis+sentinel://"));
}

// ---- nobody is there ---------------------------------------------------------------------------

// Every process of the deployment is silent: each call ends within what it was given.
TEST_F(SentinelFailover, CallsToASilentDeploymentEndInTime) {
  const client_options brief{.lock = {.ttl = 60s},
                             .operation_timeout = 1s,
                             .unreachable_limit = 1s,
                             .release_budget = 500ms};
  client c{group.url(), brief};
  std::optional<lease> held{c.mutex("orders").acquire()};
  for (std::size_t i = 0; i < group.sentinels(); ++i)
    group.sentinel(i).pause();
  for (std::size_t i = 0; i < group.servers(); ++i)
    group.server(i).pause();
  // A machine that is busy takes its time as well.
  constexpr auto slack = 5s;
  const auto takes = [](const auto& call) {
    const auto begun = runtime::now();
    call();
    return runtime::now() - begun;
  };
  client fresh{group.url(), brief};
  for (client* one : {&c, &fresh}) {
    EXPECT_LT(
        takes([&] { EXPECT_NE(thrown_by([&] { (void)one->mutex("a").try_acquire(); }), errc{}); }),
        2s + slack);
    EXPECT_LT(
        takes([&] { EXPECT_NE(thrown_by([&] { (void)one->mutex("a").acquire(30s); }), errc{}); }),
        3s + slack);
    EXPECT_LT(takes([&] { EXPECT_NE(thrown_by([&] { (void)one->status("a"); }), errc{}); }),
              2s + slack);
  }
  EXPECT_LT(takes([&] { EXPECT_FALSE(held->renew()); }), 2s + slack);
  EXPECT_LT(takes([&] { EXPECT_FALSE(held->release()); }), 2s + slack);
  held.reset();
  EXPECT_LT(takes([&] { const client gone = std::move(fresh); }), 3s + slack);
}

// ---- who may look ------------------------------------------------------------------------------

// Sentinels that want TLS, another user and another password than the servers.
TEST(SentinelAccess, SentinelsHaveCredentialsOfTheirOwn) {
  const authority ours{"our authority"};
  const temp_dir files;
  const auto write = [&](const std::string& name, const std::string& text) {
    std::ofstream{files.file(name)} << text << '\n';
    return files.file(name);
  };
  const server_tls tls{.shows = ours.issue("server"), .authority = ours.file()};
  const std::string name{sentinel_group::master_name};
  // `default` stays open on Sentinels for the test's own looks, by the unix socket.
  sentinel_group group{
      {.server = {.config = {"user locks on >their-secret ~* &* +@all -@dangerous +info"},
                  .tls = tls},
       .sentinel = {.config = {"user look on >other-secret &+switch-master &+promoted-slave "
                               "-@all +hello +auth +ping +client "
                               "+subscribe +sentinel|get-master-addr-by-name +sentinel|master"},
                    .tls = tls}}};
  const auto servers = write("servers", "their-secret");
  const auto sentinels = write("sentinels", "other-secret");
  const auto url = [&](const std::string& password_file) {
    auto with = group.url("password_file=" + servers + "&sentinel_user=look" +
                          "&sentinel_password_file=" + password_file);
    return with.replace(with.find("//"), 2, "//locks@");
  };
  {
    client c{url(sentinels), {.lock = {.ttl = 60s}, .unreachable_limit = 30s}};
    lease held = c.mutex("orders").acquire();
    ASSERT_TRUE(group.await_replicated(0));
    ASSERT_EQ(group.fail_over(), 1U);
    ASSERT_TRUE(eventually([&] {
      const auto got = if_granted(c, "other");
      return got && group.server(1).command({"EXISTS", "other"}) == "1";
    }));
    EXPECT_TRUE(held.release());
  }
  std::string said;
  EXPECT_EQ(thrown_by([&] { (void)client{url(servers)}.mutex("a").try_acquire(); }, &said),
            errc::not_authenticated);
  EXPECT_EQ(said.find("secret"), std::string::npos) << said;
}

}  // namespace holdfast::test
