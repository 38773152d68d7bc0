// What becomes of a lease: given back, lost, renewed, moved, handed on.
#include <future>
#include <set>
#include <thread>

#include "support/contract.hpp"

using namespace std::chrono_literals;

namespace holdfast::test {

CONTRACT(ReleaseGivesTheLockBack) {
  client a = make_client(lock_options{.ttl = long_ttl});
  client b = make_client();
  lease held = a.mutex("orders").acquire();
  EXPECT_TRUE(held.held());
  EXPECT_GT(held.remaining(), 0ns);
  EXPECT_TRUE(held.release());
  EXPECT_FALSE(held.held());
  EXPECT_EQ(held.remaining(), 0ns);
  EXPECT_TRUE(held.release()) << "a second release does nothing";
  EXPECT_TRUE(b.mutex("orders").try_acquire());
}

CONTRACT(ReleaseAfterLossSaysSo) {
  client c = make_client(lock_options{.ttl = long_ttl});
  lease held = c.mutex("orders").acquire();
  store().lose("orders");
  const auto answer = held.release();
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, errc::lease_lost);
  EXPECT_FALSE(held.held());
}

CONTRACT_IN_TIME(ReleasedLeaseIsNeverReportedLost) {
  const auto seen = std::make_shared<recorder>();
  client c = make_client(client_options{.lock = {.ttl = kept_ttl}, .observer = seen});
  lease held = c.mutex("orders").acquire();
  watched_token lost{held.lost()};
  ASSERT_TRUE(held.release());
  let_pass(kept_ttl + 400ms);  // past where its deadline was
  EXPECT_FALSE(lost.has_fired());
  EXPECT_EQ(held.why_lost(), loss::none);
  EXPECT_EQ(seen->count(event::kind::lost), 0U);
  EXPECT_EQ(c.counters().losses, 0U);
  EXPECT_EQ(c.counters().releases, 1U);
}

CONTRACT_IN_TIME(LossIsReportedOnce) {
  const auto seen = std::make_shared<recorder>();
  client c = make_client(client_options{.lock = {.ttl = kept_ttl}, .observer = seen});
  lease held = c.mutex("orders").acquire();
  watched_token lost{held.lost()};
  store().lose("orders");
  ASSERT_TRUE(lost.wait());
  EXPECT_FALSE(held.held());
  EXPECT_TRUE(std::set({loss::deleted, loss::session}).contains(held.why_lost()));
  EXPECT_EQ(held.renew().error().code, errc::lease_lost);
  EXPECT_EQ(held.release().error().code, errc::lease_lost);
  let_pass(kept_ttl);  // past where its deadline was
  EXPECT_EQ(seen->count(event::kind::lost), 1U);
  EXPECT_EQ(c.counters().losses, 1U);
  EXPECT_EQ(c.counters().held_now, 0U);
}

CONTRACT_IN_TIME(LossCallbacksRunOnAThreadOfTheirOwn) {
  client c = make_client(lock_options{.ttl = kept_ttl});
  lease held = c.mutex("orders").acquire();
  lease other = c.mutex("stock").acquire();
  // A callback that blocks must not keep the other lease from being renewed.
  std::stop_source enough;
  std::mutex m;
  std::condition_variable_any changed;
  const std::stop_callback<std::function<void()>> blocks{held.lost(), [&] {
                                                           std::unique_lock lock{m};
                                                           changed.wait(lock, enough.get_token(),
                                                                        [] { return false; });
                                                         }};
  c.break_lock("orders", held.token());
  let_pass(kept_ttl + kept_ttl / 2);
  EXPECT_TRUE(other.held());
  enough.request_stop();
}

CONTRACT_IN_TIME(RenewalKeepsALeaseForSeveralTtls) {
  client a = make_client(lock_options{.ttl = kept_ttl});
  client b = make_client();
  lease held = a.mutex("orders").acquire();
  const auto until = runtime::now() + 5 * kept_ttl / 2;
  while (runtime::now() < until) {
    ASSERT_TRUE(held.held());
    ASSERT_FALSE(b.mutex("orders").try_acquire());
    nap();
  }
  EXPECT_FALSE(held.lost().stop_requested());
  EXPECT_GE(a.counters().renewals, 3U);
  EXPECT_TRUE(held.release());
}

CONTRACT_IN_TIME(LeaseWithoutRenewalIsLostBeforeTheStoreLetsGo) {
  const lock_options options{.ttl = 2'000ms, .margin = 500ms, .renew = false};
  client a = make_client(options);
  client b = make_client(lock_options{.ttl = long_ttl});
  lease held = a.mutex("orders").acquire();
  watched_token lost{held.lost()};
  const auto next = b.mutex("orders").try_acquire(patience);
  const auto granted_at = runtime::now();
  ASSERT_TRUE(next);
  ASSERT_TRUE(lost.wait());
  EXPECT_LT(lost.at(), granted_at);
  EXPECT_EQ(held.why_lost(), loss::expired);
  EXPECT_EQ(a.counters().renewals, 0U);
}

// A store that hands the lock over by itself does so for a short while, which the first renewal
// extends: not where there is none.
CONTRACT(LeaseThatWasWaitedForLastsItsTtlWithoutRenewal) {
  client a = make_client(lock_options{.ttl = long_ttl});
  client b = make_client(lock_options{.ttl = long_ttl, .renew = false});
  lease held = a.mutex("orders").acquire();
  auto next = std::async(std::launch::async, [&] { return b.mutex("orders").acquire(); });
  ASSERT_TRUE(eventually([&] { return a.status("orders").waiting > 0; }));
  EXPECT_TRUE(held.release());
  lease waited_for = next.get();
  EXPECT_GT(waited_for.remaining(), store().granted(long_ttl) * 3 / 4);
  EXPECT_TRUE(waited_for.release());
}

CONTRACT(RenewByHandExtends) {
  client c = make_client(lock_options{.ttl = 3'000ms, .renew = false});
  lease held = c.mutex("orders").acquire();
  const auto at_first = held.remaining();
  EXPECT_LE(at_first, store().granted(3'000ms));
  ASSERT_TRUE(eventually([&] { return held.remaining() < at_first - 500ms; }));
  ASSERT_TRUE(held.renew());
  EXPECT_GT(held.remaining(), at_first - 500ms);
  EXPECT_TRUE(held.held());
}

CONTRACT(RenewNeverRetakesALostLock) {
  client a = make_client(lock_options{.ttl = long_ttl});
  client b = make_client(lock_options{.ttl = long_ttl});
  lease held = a.mutex("orders").acquire();
  watched_token lost{held.lost()};
  store().lose("orders");
  const auto renewed = held.renew();
  ASSERT_FALSE(renewed);
  EXPECT_EQ(renewed.error().code, errc::lease_lost);
  EXPECT_FALSE(held.held());
  EXPECT_TRUE(lost.wait()) << "answered, but not told";
  EXPECT_TRUE(b.mutex("orders").try_acquire());
}

CONTRACT(DestructorReleases) {
  client a = make_client(lock_options{.ttl = long_ttl});
  client b = make_client(lock_options{.ttl = long_ttl});
  { const lease held = a.mutex("orders").acquire(); }
  EXPECT_TRUE(b.mutex("orders").try_acquire(patience));
}

CONTRACT(SameClientGetsTheLockAgainRightAfterTheDestructor) {
  client c = make_client(lock_options{.ttl = long_ttl});
  for (int i = 0; i < 10; ++i) {
    const auto held = c.mutex("orders").try_acquire();
    ASSERT_TRUE(held) << "round " << i;
  }
}

CONTRACT(MoveAssignmentReleasesFirst) {
  client a = make_client(lock_options{.ttl = long_ttl});
  client b = make_client(lock_options{.ttl = long_ttl});
  lease held = a.mutex("orders").acquire();
  held = a.mutex("stock").acquire();
  EXPECT_EQ(held.name(), "stock");
  EXPECT_TRUE(b.mutex("orders").try_acquire(patience));
  EXPECT_FALSE(b.mutex("stock").try_acquire());
}

CONTRACT_IN_TIME(LeaseOutlivesItsClientObjectAndMutex) {
  client b = make_client(lock_options{.ttl = long_ttl});
  std::optional<lease> held;
  {
    client a = make_client(lock_options{.ttl = kept_ttl});
    held = a.mutex("orders").acquire();
  }
  let_pass(kept_ttl + kept_ttl / 2);  // only renewal can have kept it
  EXPECT_TRUE(held->held());
  EXPECT_FALSE(b.mutex("orders").try_acquire());
  EXPECT_TRUE(held->release());
}

CONTRACT(DetachedLeaseCanBeAdopted) {
  client a = make_client(lock_options{.ttl = 10'000ms});
  client b = make_client(lock_options{.ttl = long_ttl});
  lease_ticket ticket;
  {
    lease held = a.mutex("orders").acquire();
    ticket = held.detach();
    EXPECT_FALSE(held.held());
    EXPECT_FALSE(held.lost().stop_requested());
  }
  EXPECT_FALSE(b.mutex("orders").try_acquire()) << "detaching does not release";
  lease adopted = b.mutex("orders").adopt(ticket);
  EXPECT_TRUE(adopted.held());
  EXPECT_EQ(adopted.token(), ticket.token);
  EXPECT_EQ(adopted.owner(), ticket.owner);
  EXPECT_FALSE(a.mutex("orders").try_acquire());
  EXPECT_TRUE(adopted.release());
  EXPECT_TRUE(a.mutex("orders").try_acquire());
}

CONTRACT_IN_TIME(DetachedLeaseThatNobodyAdoptsIsFreeAfterItsTtl) {
  client a = make_client(lock_options{.ttl = short_ttl});
  client b = make_client(lock_options{.ttl = long_ttl});
  const auto asked = runtime::now();
  const lease_ticket ticket = a.mutex("orders").acquire().detach();
  EXPECT_TRUE(b.mutex("orders").try_acquire(patience));
  EXPECT_GE(runtime::now() - asked, store().granted(short_ttl) - 20ms);
  EXPECT_EQ(thrown_by([&] { (void)a.mutex("orders").adopt(ticket); }), errc::lease_lost);
}

CONTRACT(AdoptingWhatHasEndedIsLeaseLost) {
  client a = make_client(lock_options{.ttl = long_ttl});
  const lease_ticket ticket = a.mutex("orders").acquire().detach();
  store().lose("orders");
  EXPECT_EQ(thrown_by([&] { (void)a.mutex("orders").adopt(ticket); }), errc::lease_lost);
}

}  // namespace holdfast::test
