// Scenarios G, 9, 10, 13, 14 and 15: requests and replies that are late or never come.
#include <thread>

#include "support/proxied_redis.hpp"

using namespace std::chrono_literals;

namespace holdfast::test {

class LostMessages : public proxied_redis {
 protected:
  static client_options impatient(std::chrono::milliseconds ttl = 60s) {
    return {.lock = {.ttl = ttl}, .operation_timeout = 400ms, .unreachable_limit = 1s};
  }
};

// G: the server holds a key for an attempt that nobody heard the answer of.
TEST_F(LostMessages, UnansweredAcquireIsTakenBack) {
  client c = through_proxy(impatient());
  proxy.inject(fault::swallow_reply, asks, 1000);
  const errc code = thrown_by([&] { (void)c.mutex("orders").acquire(); });
  EXPECT_TRUE(code == errc::outcome_unknown || code == errc::store_unreachable);
  EXPECT_TRUE(eventually([&] { return !exists("orders"); })) << "long before its TTL";
  EXPECT_GE(proxy.seen(releases), 1U);
}

// G, when taking back is not possible either: the error says what is not known.
TEST_F(LostMessages, AcquireThatCannotBeTakenBackIsOutcomeUnknown) {
  client c = through_proxy(impatient(3s));
  proxy.inject(fault::swallow_reply, asks, 1000);
  proxy.inject(fault::cut_before_send, releases, 1000);
  std::string what;
  const errc code = thrown_by([&] { (void)c.mutex("orders").acquire(); }, &what);
  EXPECT_EQ(code, errc::outcome_unknown) << what;
  EXPECT_EQ(make_error_code(code), condition::outcome_unknown);
  EXPECT_GE(c.counters().unknown_outcomes, 1U);
  EXPECT_TRUE(eventually([&] { return !exists("orders"); })) << "nothing outlasts its TTL";
}

// 13: one grant, asked for twice, freed once.
TEST_F(LostMessages, RetriedAcquireIsOneGrantAndOneReleaseFreesIt) {
  client c = through_proxy({.lock = {.ttl = 60s}, .operation_timeout = 400ms});
  proxy.inject(fault::swallow_reply, asks);
  lease held = c.mutex("orders").acquire();
  EXPECT_EQ(proxy.seen(asks), 2U);
  EXPECT_TRUE(held.held());
  const std::string value = server.command({"GET", "orders"});
  EXPECT_NE(value.find(";token=" + to_string(held.token()) + ";"), std::string::npos) << value;
  EXPECT_TRUE(value.starts_with(held.owner()));
  EXPECT_TRUE(held.release());
  EXPECT_FALSE(exists("orders"));
}

// 13, with the connection gone instead of the reply late.
TEST_F(LostMessages, AcquireWhoseConnectionWasCutIsAskedAgain) {
  client c = through_proxy({.lock = {.ttl = 60s}});
  proxy.inject(fault::cut_before_reply, asks);
  lease held = c.mutex("orders").acquire();
  EXPECT_TRUE(held.held());
  EXPECT_TRUE(held.release());
  EXPECT_FALSE(exists("orders"));
}

// 14: the release was done, its reply lost, the lock taken again; then the release is retried.
TEST_F(LostMessages, RetriedReleaseLeavesTheSameClientsNextLockAlone) {
  client c =
      through_proxy({.lock = {.ttl = 60s}, .operation_timeout = 400ms, .release_budget = 5s});
  proxy.inject(fault::cut_before_reply, releases);
  { const lease first = c.mutex("orders").acquire(); }  // its destructor sends the release
  ASSERT_TRUE(proxy.await_faults(1));
  ASSERT_TRUE(eventually([&] { return !exists("orders"); }));
  lease again = c.mutex("orders").acquire();
  (void)proxy.await_request(releases, 2, 5s);  // if it is retried, this is when
  EXPECT_TRUE(again.renew());
  EXPECT_TRUE(exists("orders"));
  EXPECT_TRUE(again.release());
  EXPECT_FALSE(exists("orders"));
}

TEST_F(LostMessages, ReleaseWhoseReplyIsLostIsNotCalledLost) {
  client c = through_proxy({.lock = {.ttl = 60s}, .operation_timeout = 400ms});
  lease held = c.mutex("orders").acquire();
  watched_token lost{held.lost()};
  proxy.inject(fault::cut_before_reply, releases, 1000);
  const auto answer = held.release();
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, errc::outcome_unknown);
  EXPECT_FALSE(held.held());
  EXPECT_FALSE(lost.has_fired());
  EXPECT_EQ(c.counters().losses, 0U);
  EXPECT_FALSE(exists("orders"));
}

TEST_F(LostMessages, DestructorsReleaseIsTriedAgainInTheBackground) {
  client c = through_proxy({.lock = {.ttl = 60s}, .release_budget = 10s});
  proxy.inject(fault::cut_before_send, releases);
  { const lease held = c.mutex("orders").acquire(); }
  ASSERT_TRUE(proxy.await_faults(1));
  EXPECT_TRUE(eventually([&] { return !exists("orders"); })) << "long before its TTL";
}

// 15: the acquire is late, but the connection lives: the release follows it there.
TEST_F(LostMessages, LateAcquireIsFollowedByItsRelease) {
  client c = through_proxy(impatient());
  proxy.inject(fault::hold_request, asks);
  EXPECT_EQ(thrown_by([&] { (void)c.mutex("orders").try_acquire(); }), errc::outcome_unknown);
  const auto calls = scripts_run();
  proxy.let_go();
  ASSERT_TRUE(eventually([&] { return scripts_run() >= calls + 2; }));
  EXPECT_FALSE(exists("orders"));
}

// 15: the acquire arrives after it was given up and taken back. An orphan, until its TTL.
TEST_F(LostMessages, AcquireThatArrivesAfterItsReleaseIsGoneAfterItsTtl) {
  constexpr auto ttl = 2s;
  client c = through_proxy(impatient(ttl));
  proxy.inject(fault::hold_and_cut, asks, 1000);
  EXPECT_EQ(thrown_by([&] { (void)c.mutex("orders").try_acquire(); }), errc::outcome_unknown);
  ASSERT_FALSE(exists("orders"));
  proxy.let_go();
  ASSERT_TRUE(eventually([&] { return exists("orders"); }));
  EXPECT_LE(pttl("orders"), ttl);
  EXPECT_EQ(c.counters().held_now, 0U);
  EXPECT_TRUE(eventually([&] { return !exists("orders"); })) << "nobody renews it";
}

// 9: cancelled while the request is on its way.
TEST_F(LostMessages, CancelledAcquireLeavesNothingHeld) {
  client c = through_proxy({.lock = {.ttl = 60s}, .operation_timeout = 1s});
  proxy.inject(fault::hold_reply, asks);
  std::stop_source stop;
  std::optional<lease> got;
  std::thread asking{[&] { got = c.mutex("orders").try_acquire(forever, stop.get_token()); }};
  EXPECT_TRUE(proxy.await_faults(1));
  EXPECT_TRUE(eventually([&] { return exists("orders"); }));
  stop.request_stop();
  proxy.let_go();
  asking.join();
  if (got) got.reset();  // granted before it was stopped
  EXPECT_TRUE(eventually([&] { return !exists("orders"); }));
}

// 10: a renewal is under way when the lease is released, and answered afterwards.
TEST_F(LostMessages, RenewalThatRacesTheReleaseIsNoLoss) {
  const auto seen = std::make_shared<recorder>();
  client c = through_proxy({.lock = {.ttl = 3s}, .observer = seen});
  lease held = c.mutex("orders").acquire();
  watched_token lost{held.lost()};
  proxy.inject(fault::hold_request, renews);
  ASSERT_TRUE(proxy.await_faults(1));
  ASSERT_TRUE(held.release());
  ASSERT_FALSE(exists("orders"));
  proxy.let_go();  // the server answers the renewal: nobody holds that
  const auto after = proxy.seen(renews);
  let_pass(4s);
  EXPECT_FALSE(lost.has_fired());
  EXPECT_EQ(seen->count(event::kind::lost), 0U);
  EXPECT_EQ(c.counters().losses, 0U);
  EXPECT_EQ(proxy.seen(renews), after) << "no renewal after release";
  EXPECT_FALSE(exists("orders")) << "and none that brings the lock back";
}

// J again: a renewal that arrives when somebody else holds the lock.
TEST_F(LostMessages, LateRenewalDoesNotExtendTheNextHoldersLock) {
  client a = through_proxy({.lock = {.ttl = 3s}, .operation_timeout = 1s});
  lease old = a.mutex("orders").acquire();
  proxy.inject(fault::hold_request, renews, 1000);
  ASSERT_TRUE(proxy.await_faults(1));
  ASSERT_EQ(server.command({"SET", "orders", "foreign", "PX", "30000"}), "OK");
  const auto calls = scripts_run();
  proxy.let_go();
  ASSERT_TRUE(eventually([&] { return scripts_run() > calls; }));
  EXPECT_GT(pttl("orders"), 5s);
  EXPECT_EQ(server.command({"GET", "orders"}), "foreign");
}

// A cut at any request of an ordinary life is survived: nothing is held twice or left behind.
TEST_F(LostMessages, CutAtAnyPointIsSurvived) {
  for (const fault what : {fault::cut_before_reply, fault::cut_before_send}) {
    for (const std::string& at : {asks, releases}) {
      client c = through_proxy({.lock = {.ttl = 60s}, .release_budget = 10s});
      proxy.inject(what, at);
      { const lease held = c.mutex("orders").acquire(); }
      EXPECT_TRUE(eventually([&] { return !exists("orders"); }));
      proxy.clear();
    }
  }
}

}  // namespace holdfast::test
