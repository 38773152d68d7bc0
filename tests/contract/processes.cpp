// Holders in processes of their own: killed, stopped and continued. And a store out of reach.
#include <csignal>

#include "support/contract.hpp"
#include "support/holder_process.hpp"

using namespace std::chrono_literals;

namespace holdfast::test {

namespace {
// Redis counts whole milliseconds on a wall clock that may be slewed.
constexpr std::chrono::milliseconds clock_tolerance{20};
}  // namespace

CONTRACT_BETWEEN_PROCESSES(KilledHolderFreesLockAfterItsTtlAndNotBefore) {
  holder_process holder{store().url(), "orders", kept_ttl};
  client c = make_client(lock_options{.ttl = long_ttl});
  holder.child().signal(SIGKILL);
  ASSERT_TRUE(holder.child().wait_exit());
  const auto next = c.mutex("orders").try_acquire(patience);
  ASSERT_TRUE(next);
  const auto held_for = runtime::now() - holder.asked_at();
  EXPECT_GE(held_for, store().granted(kept_ttl) - clock_tolerance);
  EXPECT_GT(next->token(), holder.token());
}

CONTRACT_BETWEEN_PROCESSES(HolderThatExitsFreesItsLockAtOnce) {
  holder_process holder{store().url(), "orders", long_ttl};
  client c = make_client();
  EXPECT_FALSE(c.mutex("orders").try_acquire());
  EXPECT_EQ(c.status("orders").holder.value().pid, holder.child().pid());
  holder.child().close_stdin();
  EXPECT_EQ(holder.child().wait_exit(), (exit_status{false, 0}));
  EXPECT_TRUE(c.mutex("orders").try_acquire(patience));
}

CONTRACT_BETWEEN_PROCESSES(LivingHolderKeepsItsLockBeyondItsTtl) {
  holder_process holder{store().url(), "orders", kept_ttl};
  client c = make_client();
  EXPECT_FALSE(c.mutex("orders").try_acquire(3 * kept_ttl / 2));
  holder.tell("release");
  EXPECT_TRUE(holder.hear("release").starts_with("release ok"));
  EXPECT_TRUE(c.mutex("orders").try_acquire());
}

// Scenario 1: paused for longer than the TTL, then continued.
CONTRACT_BETWEEN_PROCESSES(StoppedHolderLearnsOfItsLossOnResumeAndHarmsNobody) {
  holder_process holder{store().url(), "orders", kept_ttl};
  client c = make_client(lock_options{.ttl = long_ttl});
  fence::gate gate;
  EXPECT_TRUE(gate.accept(holder.token()));
  holder.child().signal(SIGSTOP);
  auto next = c.mutex("orders").try_acquire(patience);
  ASSERT_TRUE(next) << "a stopped holder's lock is free after its TTL";
  EXPECT_TRUE(gate.accept(next->token()));

  holder.tell("query");  // its first act when it runs again
  const auto resumed = runtime::now();
  holder.child().signal(SIGCONT);
  EXPECT_TRUE(holder.hear("query").starts_with("query lost"));
  ASSERT_FALSE(holder.hear("lost").empty());
  EXPECT_GE(holder.stamp("lost"), resumed);
  EXPECT_LT(holder.stamp("lost") - resumed, 20s);
  EXPECT_FALSE(gate.accept(holder.token()));

  // Nothing that it does now touches its successor's lock.
  holder.tell("renew\nrelease");
  EXPECT_TRUE(holder.hear("renew").starts_with("renew lease_lost"));
  EXPECT_TRUE(holder.hear("release").starts_with("release lease_lost"));
  holder.child().close_stdin();
  ASSERT_TRUE(holder.child().wait_exit());
  EXPECT_TRUE(next->renew());
  EXPECT_EQ(c.status("orders").holder.value().token, next->token());
  EXPECT_TRUE(next->release());
}

CONTRACT_BETWEEN_PROCESSES(LeaseCanBeAdoptedByAnotherClientAfterItsClientIsGone) {
  lease_ticket ticket;
  {
    client a = make_client(lock_options{.ttl = 10'000ms});
    ticket = a.mutex("orders").acquire().detach();
  }
  client b = make_client(lock_options{.ttl = 10'000ms});
  lease adopted = b.mutex("orders").adopt(ticket);
  EXPECT_TRUE(adopted.held());
  EXPECT_EQ(b.status("orders").holder.value().token, ticket.token);
  EXPECT_TRUE(adopted.release());
}

CONTRACT_OVER_A_NETWORK(UnreachableStoreMeansLossBeforeItLetsGo) {
  const lock_options options{.ttl = 3'000ms, .margin = 600ms};
  client a = make_client(options);
  lease held = a.mutex("orders").acquire();
  watched_token lost{held.lost()};
  store().reachable(false);
  const auto cut_off = runtime::now();
  ASSERT_TRUE(lost.wait());
  // It can have been renewed last just before: from then on, less drift and margin.
  EXPECT_LE(lost.at() - cut_off, store().granted(options.ttl));
  EXPECT_EQ(held.why_lost(), loss::expired);
  EXPECT_FALSE(held.held());
  store().reachable(true);
  client b = make_client(lock_options{.ttl = long_ttl});
  const auto next = b.mutex("orders").try_acquire(patience);
  ASSERT_TRUE(next);
  EXPECT_GT(next->token(), held.token());
}

CONTRACT_OVER_A_NETWORK(ShortOutageIsSurvived) {
  client a = make_client(lock_options{.ttl = 6'000ms});
  lease held = a.mutex("orders").acquire();
  store().reachable(false);
  let_pass(1'500ms);
  store().reachable(true);
  const auto before = a.counters().renewals;
  ASSERT_TRUE(eventually([&] { return a.counters().renewals > before; }));
  EXPECT_TRUE(held.held());
  EXPECT_TRUE(held.release());
}

CONTRACT_OVER_A_NETWORK(AcquireFromAnUnreachableStoreFailsInBoundedTime) {
  const client_options options{
      .lock = {.ttl = kept_ttl}, .operation_timeout = 300ms, .unreachable_limit = 800ms};
  client c = make_client(options);
  { const lease warm = c.mutex("orders").acquire(); }
  store().reachable(false);
  const auto started = runtime::now();
  std::string what;
  const errc code = thrown_by([&] { (void)c.mutex("orders").acquire(); }, &what);
  EXPECT_TRUE(code == errc::store_unreachable || code == errc::outcome_unknown) << what;
  EXPECT_LT(runtime::now() - started, 20s);
  store().reachable(true);
  EXPECT_TRUE(c.mutex("orders").try_acquire(patience)) << "whatever arrived is gone after a TTL";
}

}  // namespace holdfast::test
