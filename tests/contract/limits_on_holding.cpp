// max_hold, progress, fencing, and looking at or breaking somebody else's lock.
#include <unistd.h>

#include <algorithm>
#include <thread>

#include "support/contract.hpp"

using namespace std::chrono_literals;

namespace holdfast::test {

CONTRACT_IN_TIME(MaxHoldEndsALeaseThatRenewalWouldKeep) {
  client a = make_client(lock_options{.ttl = kept_ttl, .max_hold = 500ms});
  client b = make_client(lock_options{.ttl = long_ttl});
  const auto asked = runtime::now();
  lease held = a.mutex("orders").acquire();
  watched_token lost{held.lost()};
  ASSERT_TRUE(lost.wait());
  EXPECT_LE(lost.at() - asked, 20s);
  EXPECT_EQ(held.why_lost(), loss::max_hold);
  EXPECT_FALSE(held.held());
  EXPECT_TRUE(b.mutex("orders").try_acquire(patience));
}

// A keep-alive for one lock of a client must not hold another that has ended.
CONTRACT_IN_TIME(MaxHoldFreesTheLockWhileItsClientHoldsOthers) {
  client a = make_client(lock_options{.ttl = kept_ttl});
  client b = make_client(lock_options{.ttl = long_ttl});
  const lease kept = a.mutex("stock").acquire();
  lease limited = a.mutex("orders", {.ttl = kept_ttl, .max_hold = 500ms}).acquire();
  watched_token lost{limited.lost()};
  ASSERT_TRUE(lost.wait());
  EXPECT_TRUE(b.mutex("orders").try_acquire(20s));
  EXPECT_TRUE(kept.held());
}

CONTRACT_IN_TIME(RenewalStopsWhenTheHolderMakesNoProgress) {
  constexpr std::chrono::milliseconds within = 2'000ms;
  client a = make_client(lock_options{.ttl = kept_ttl, .progress_within = within});
  client b = make_client(lock_options{.ttl = long_ttl});
  lease held = a.mutex("orders").acquire();
  watched_token lost{held.lost()};
  const auto until = runtime::now() + 3 * kept_ttl / 2;
  while (runtime::now() < until) {
    held.progress();
    ASSERT_TRUE(held.held());
    nap();
  }
  ASSERT_TRUE(lost.wait());  // no more progress
  EXPECT_EQ(held.why_lost(), loss::no_progress);
  EXPECT_TRUE(b.mutex("orders").try_acquire(patience));
}

// The holder's own clock ended the lease; the store would keep the lock for half of its TTL more.
CONTRACT_IN_TIME(ReleaseAfterNoProgressFreesTheLockAtOnce) {
  constexpr std::chrono::milliseconds ttl = 12s;
  client a = make_client(lock_options{.ttl = ttl, .margin = ttl / 2, .progress_within = 500ms});
  client b = make_client(lock_options{.ttl = long_ttl});
  lease held = a.mutex("orders").acquire();
  watched_token lost{held.lost()};
  ASSERT_TRUE(lost.wait());
  ASSERT_EQ(held.why_lost(), loss::no_progress);
  EXPECT_EQ(held.release().error().code, errc::lease_lost);
  EXPECT_TRUE(b.mutex("orders").try_acquire(3s)) << "long before the TTL ends";
}

CONTRACT_IN_TIME(GateTurnsAwayAnOvertakenHolder) {
  client a = make_client(lock_options{.ttl = short_ttl, .renew = false});
  client b = make_client(lock_options{.ttl = long_ttl});
  fence::gate gate;
  lease old = a.mutex("orders").acquire();
  EXPECT_TRUE(gate.accept(old.token()));
  EXPECT_TRUE(gate.accept(old.token())) << "the same holder goes on";
  const auto next = b.mutex("orders").try_acquire(patience);
  ASSERT_TRUE(next);
  EXPECT_TRUE(gate.accept(old.token())) << "until the resource has heard of the next one";
  EXPECT_TRUE(gate.accept(next->token()));
  EXPECT_FALSE(gate.accept(old.token()));
  EXPECT_EQ(gate.highest(), next->token());
}

CONTRACT(StatusTellsWhoHoldsTheLock) {
  client a = make_client(lock_options{.ttl = long_ttl, .label = "nightly\nreport"});
  client b = make_client();
  EXPECT_FALSE(b.status("orders").holder);
  const lease held = a.mutex("orders").acquire();
  const lock_status status = b.status("orders");
  EXPECT_EQ(status.name, "orders");
  ASSERT_TRUE(status.holder);
  EXPECT_FALSE(status.holder->foreign);
  EXPECT_EQ(status.holder->pid, ::getpid());
  EXPECT_EQ(status.holder->label, "nightly\nreport");
  EXPECT_EQ(status.holder->token, held.token());
  EXPECT_FALSE(status.holder->host.empty());
  EXPECT_LT(std::chrono::abs(std::chrono::system_clock::now() - status.holder->since), 1min);
  ASSERT_TRUE(status.remaining);
  EXPECT_GT(*status.remaining, 0ms);
  EXPECT_LE(*status.remaining, long_ttl);
  const bool quorum = b.guarantees().storage == guarantees::storage_kind::quorum;
  EXPECT_EQ(status.nodes.empty(), !quorum) << "only a quorum has nodes to speak of";
}

CONTRACT(ListShowsTheLocksThatMatch) {
  client a = make_client(lock_options{.ttl = long_ttl});
  client b = make_client();
  const lease one = a.mutex("orders/1").acquire();
  const lease two = a.mutex("orders/2").acquire();
  const lease other = a.mutex("stock/1").acquire();
  std::vector<std::string> names;
  for (const lock_status& s : b.list("orders/*")) {
    names.push_back(s.name);
    EXPECT_TRUE(s.holder);
  }
  std::sort(names.begin(), names.end());
  EXPECT_EQ(names, (std::vector<std::string>{"orders/1", "orders/2"}));
  EXPECT_TRUE(b.list("nothing*").empty());
}

CONTRACT(BreakTakesTheLockFromTheHolderOfThatToken) {
  client a = make_client(lock_options{.ttl = kept_ttl});
  client b = make_client(lock_options{.ttl = long_ttl});
  lease held = a.mutex("orders").acquire();
  watched_token lost{held.lost()};
  b.break_lock("orders", held.token());
  auto next = b.mutex("orders").try_acquire();
  ASSERT_TRUE(next);
  EXPECT_GT(next->token(), held.token());
  ASSERT_TRUE(lost.wait());
  EXPECT_FALSE(held.held());
  EXPECT_EQ(held.release().error().code, errc::lease_lost);
  EXPECT_TRUE(next->held());
  EXPECT_EQ(b.status("orders").holder.value().token, next->token());
}

CONTRACT(BreakWithAnotherTokenChangesNothing) {
  client a = make_client(lock_options{.ttl = long_ttl});
  client b = make_client();
  lease held = a.mutex("orders").acquire();
  const fencing_token wrong{held.token().value() + 1};
  EXPECT_EQ(thrown_by([&] { b.break_lock("orders", wrong); }), errc::not_held);
  EXPECT_EQ(thrown_by([&] { b.break_lock("free", held.token()); }), errc::not_held);
  EXPECT_TRUE(held.renew());
  EXPECT_TRUE(held.release());
}

CONTRACT(BrokenLockGoesToTheNextWaiter) {
  client a = make_client(lock_options{.ttl = long_ttl});
  const auto seen = std::make_shared<recorder>();
  client b = make_client(client_options{.lock = {.ttl = long_ttl}, .observer = seen});
  const lease held = a.mutex("orders").acquire();
  std::optional<lease> got;
  std::thread waiter{[&] { got = b.mutex("orders").try_acquire(patience); }};
  EXPECT_TRUE(seen->await(event::kind::waiting));
  a.break_lock("orders", held.token());
  waiter.join();
  ASSERT_TRUE(got);
  EXPECT_GT(got->token(), held.token());
}

// Scenario 11: nested use of one client with a shorter TTL.
CONTRACT(ShorterTtlElsewhereDoesNotShortenALease) {
  client c = make_client();
  lease outer = c.mutex("outer", {.ttl = 10'000ms, .renew = false}).acquire();
  const auto before = outer.remaining();
  {
    const lease inner = c.mutex("inner", {.ttl = kept_ttl}).acquire();
    EXPECT_TRUE(inner.held());
  }
  EXPECT_GT(outer.remaining(), before - 5s);
  EXPECT_GT(c.status("outer").remaining.value(), 5s - 20ms);
}

CONTRACT(GuaranteesAreStated) {
  client c = make_client();
  const guarantees g = c.guarantees();
  EXPECT_FALSE(g.summary.empty());
  EXPECT_EQ(g.shared_between_processes, g.storage != guarantees::storage_kind::process);
}

// Scenario 12: what would end a lease at once and call it renewed is refused at the border.
CONTRACT(OptionsThatMakeNoSenseAreRefused) {
  client c = make_client();
  const auto refused = [&](const lock_options& options) {
    return thrown_by([&] { (void)c.mutex("orders", options); }) == errc::invalid_argument;
  };
  EXPECT_TRUE(refused({.ttl = 0ms}));
  EXPECT_TRUE(refused({.ttl = -1ms}));
  EXPECT_TRUE(refused({.ttl = 19ms}));
  EXPECT_TRUE(refused({.ttl = std::chrono::hours{25}}));
  EXPECT_TRUE(refused({.ttl = 1'000ms, .margin = 501ms}));
  EXPECT_TRUE(refused({.ttl = 1'000ms, .margin = -1ms}));
  EXPECT_TRUE(refused({.max_hold = -1ms}));
  EXPECT_TRUE(refused({.progress_within = -1ms}));
  EXPECT_TRUE(refused({.label = std::string(257, 'x')}));
  EXPECT_FALSE(refused({.ttl = 20ms}));
}

}  // namespace holdfast::test
