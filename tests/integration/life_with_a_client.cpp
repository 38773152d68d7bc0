// Scenario 5 and the rest of a client's life: fork, signals, reconnecting, threads, many leases.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <thread>

#include "support/proxied_redis.hpp"

using namespace std::chrono_literals;

namespace holdfast::test {

class ClientLife : public proxied_redis {};

namespace {

// What the child finds, as its exit status: 0, or the number of the first thing that was wrong.
int in_child(client& c, mutex& m, lease& held) {
  if (held.held()) return 1;
  if (held.remaining() != 0ns) return 2;
  const auto renewed = held.renew();
  if (renewed || renewed.error().code != errc::forked) return 3;
  const auto released = held.release();
  if (released || released.error().code != errc::forked) return 4;
  if (thrown_by([&] { (void)m.try_acquire(); }) != errc::forked) return 5;
  if (thrown_by([&] { m.lock(); }) != errc::forked) return 6;
  if (thrown_by([&] { (void)c.mutex("stock"); }) != errc::forked) return 7;
  if (thrown_by([&] { (void)c.status("orders"); }) != errc::forked) return 8;
  m.unlock();
  c.stop();
  held.progress();
  {
    // Destructors and assignments do nothing.
    const lease dies = std::move(held);
    const client also = std::move(c);
  }
  return 0;
}

int exit_status_of(pid_t child) {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

// 5
TEST_F(ClientLife, ForkedChildsHandlesAreInert) {
  client c = direct({.lock = {.ttl = 2'100ms}});
  mutex m = c.mutex("orders");
  lease held = m.acquire();
  // By then the client's threads sleep. One in a sanitizer's allocator would leave it locked in
  // the child.
  ASSERT_TRUE(eventually([&] { return c.counters().renewals > 0; }));
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) ::_exit(in_child(c, m, held));
  EXPECT_EQ(exit_status_of(child), 0);
  const auto before = c.counters().renewals;
  ASSERT_TRUE(eventually([&] { return c.counters().renewals > before + 1; }));
  EXPECT_TRUE(held.held());
  EXPECT_TRUE(exists("orders"));
  EXPECT_TRUE(held.release());
}

// Sanitizers of g++ 12 do not survive new threads in the child of a program that has threads.
#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
TEST_F(ClientLife, ForkedChildCanMakeAClientOfItsOwn) {
  client c = direct({.lock = {.ttl = 60s}});
  const lease held = c.mutex("orders").acquire();
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    int wrong = 0;
    {
      client own{server.url(), {.lock = {.ttl = 60s}}};
      if (own.mutex("orders").try_acquire()) wrong = 1;
      if (!own.mutex("stock").try_acquire()) wrong = 2;
    }
    ::_exit(wrong);
  }
  EXPECT_EQ(exit_status_of(child), 0);
  EXPECT_TRUE(held.held());
}
#endif

namespace {
std::atomic<int> sigpipes{0};
}

TEST_F(ClientLife, BrokenConnectionRaisesNoSigpipe) {
  struct sigaction before {};
  struct sigaction count {};
  count.sa_handler = [](int) { ++sigpipes; };
  ::sigaction(SIGPIPE, &count, &before);
  client c = direct({.lock = {.ttl = 60s}, .operation_timeout = 300ms, .unreachable_limit = 300ms});
  std::optional<lease> held = c.mutex("orders").acquire();
  server.kill9();
  for (int i = 0; i < 3; ++i) {
    EXPECT_NE(thrown_by([&] { (void)c.mutex("stock").acquire(); }), errc{});
  }
  held.reset();
  ::sigaction(SIGPIPE, &before, nullptr);
  EXPECT_EQ(sigpipes, 0);
}

TEST_F(ClientLife, ReconnectsAfterTheServerWasRestarted) {
  const auto seen = std::make_shared<recorder>();
  client c = direct({.lock = {.ttl = 60s}, .observer = seen});
  { const lease warm = c.mutex("warm").acquire(); }
  server.kill9();
  server.restart();
  lease held = c.mutex("orders").acquire();
  EXPECT_TRUE(seen->await(event::kind::reconnected));
  EXPECT_GE(c.counters().reconnects, 1U);
  EXPECT_TRUE(held.release());
}

TEST_F(ClientLife, AcquireWaitsOutAServerThatIsAway) {
  client c = through_proxy({.lock = {.ttl = 60s}, .unreachable_limit = 60s});
  server.kill9();
  const auto before = proxy.connections_made();
  std::optional<lease> got;
  std::thread asking{[&] { got = c.mutex("orders").acquire(); }};
  EXPECT_TRUE(eventually([&] { return proxy.connections_made() >= before + 2; }));
  server.restart();
  asking.join();
  EXPECT_TRUE(got);
}

TEST_F(ClientLife, LeasesSurviveConnectionsThatAreCut) {
  client c = through_proxy({.lock = {.ttl = 3s}});
  lease held = c.mutex("orders").acquire();
  for (int i = 0; i < 3; ++i) {
    const auto before = c.counters().renewals;
    proxy.cut_all();
    ASSERT_TRUE(eventually([&] { return c.counters().renewals > before; }));
  }
  EXPECT_TRUE(held.held());
  EXPECT_TRUE(held.release());
}

TEST_F(ClientLife, ManyThreadsShareOneClientAndItsConnections) {
  client c = direct({.lock = {.ttl = 60s}});
  constexpr int threads = 24;
  constexpr int rounds = 30;
  std::vector<std::thread> all;
  for (int i = 0; i < threads; ++i) {
    all.emplace_back([&, i] {
      mutex own = c.mutex("own/" + std::to_string(i));
      mutex shared = c.mutex("shared/" + std::to_string(i % 4));
      for (int k = 0; k < rounds; ++k) {
        lease held = own.acquire();
        if (k % 10 == 0) {
          EXPECT_TRUE(shared.acquire().release());
        }
        EXPECT_TRUE(held.release());
      }
    });
  }
  for (std::thread& t : all)
    t.join();
  EXPECT_EQ(c.counters().failures, 0U);
  EXPECT_EQ(c.counters().held_now, 0U);
  EXPECT_EQ(c.counters().acquisitions, std::uint64_t{threads * rounds + threads * rounds / 10});
  EXPECT_LE(std::stoi(server.info("clients", "connected_clients")), 16);
}

// The watchdog's promise: ten thousand leases, a call for each hundred, and none missed.
TEST_F(ClientLife, TenThousandLeasesAreRenewedInBatches) {
  constexpr std::size_t leases = 10'000;
  constexpr int threads = 4;
  client c = direct({.lock = {.ttl = 12s}});
  std::vector<std::optional<lease>> all(leases);
  std::vector<std::thread> acquiring;
  for (int t = 0; t < threads; ++t) {
    acquiring.emplace_back([&, t] {
      for (std::size_t i = static_cast<std::size_t>(t); i < leases; i += threads) {
        all[i] = c.mutex("lock/" + std::to_string(i)).acquire();
      }
    });
  }
  for (std::thread& t : acquiring)
    t.join();
  ASSERT_EQ(c.counters().held_now, leases);

  const counters before = c.counters();
  const auto scripts = scripts_run();
  ASSERT_TRUE(eventually([&] { return c.counters().renewals >= before.renewals + 2 * leases; }));
  // In this order: what is renewed in between is not held against the server's count.
  const auto calls = scripts_run() - scripts;
  const counters after = c.counters();
  EXPECT_EQ(after.losses, 0U);
  EXPECT_EQ(after.renewal_failures, 0U);
  // One more may be under way, not counted in `renewals` yet.
  const auto most = (after.renewals - before.renewals) / 100 + 1;
  EXPECT_LE(after.renewal_calls - before.renewal_calls, most);
  EXPECT_LE(calls, most) << "the server counts the same";
  for (const auto& one : all)
    ASSERT_TRUE(one->held());
}

// Renewals do not queue behind other traffic, however stuck that is.
TEST_F(ClientLife, RenewalsPassARequestThatIsStuck) {
  client c =
      through_proxy({.lock = {.ttl = 2'100ms}, .operation_timeout = 60s, .unreachable_limit = 60s});
  lease held = c.mutex("orders").acquire();
  proxy.inject(fault::hold_request, asks, 1000);
  std::stop_source stop;
  std::vector<std::thread> stuck;
  for (int i = 0; i < 12; ++i) {
    stuck.emplace_back(
        [&, i] { (void)c.mutex("stuck/" + std::to_string(i)).try_acquire(0ns, stop.get_token()); });
  }
  EXPECT_TRUE(proxy.await_request("stuck/"));
  const auto before = c.counters().renewals;
  EXPECT_TRUE(eventually([&] { return c.counters().renewals >= before + 4; }));
  EXPECT_TRUE(held.held());
  EXPECT_EQ(c.counters().renewal_failures, 0U);
  proxy.let_go();
  for (std::thread& t : stuck)
    t.join();
}

TEST_F(ClientLife, DestructorDoesNotWaitForAStoreThatIsStuck) {
  client c =
      through_proxy({.lock = {.ttl = 2s}, .operation_timeout = 60s, .release_budget = 200ms});
  std::optional<lease> held = c.mutex("orders").acquire();
  proxy.stall_requests(true);
  const auto started = runtime::now();
  held.reset();
  EXPECT_LT(runtime::now() - started, 10s);
  { const client gone = std::move(c); }
  EXPECT_LT(runtime::now() - started, 20s);
}

TEST_F(ClientLife, PrefixAndDatabaseOfTheUrlAreUsed) {
  client c{server.url() + "?prefix=locks:&db=3", {.lock = {.ttl = 60s}}};
  const lease held = c.mutex("orders").acquire();
  raw_redis look{server.where()};
  (void)look.command({"SELECT", "3"});
  EXPECT_EQ(look.command({"EXISTS", "locks:orders"}).integer, 1);
  EXPECT_FALSE(exists("orders"));
  EXPECT_EQ(c.list("ord*").size(), 1U);
}

}  // namespace holdfast::test
