// etcd:// when servers fail and messages are lost.
#include "etcd_fixture.hpp"
#include "support/fault_proxy.hpp"

using namespace std::chrono_literals;

namespace holdfast::test {

namespace {

constexpr auto changes = "/v3/kv/txn";

}  // namespace

// Scenario 37.
TEST_F(Etcd, LeasesSurviveTheRestartOfEachServer) {
  auto c = make_client({.ttl = 4s});
  const auto held = c.mutex("orders").acquire();
  auto other = make_client();
  for (std::size_t i = 0; i < cluster.size(); ++i) {
    cluster.kill9(i);
    const auto before = c.counters().renewals;
    EXPECT_TRUE(eventually([&] { return c.counters().renewals > before; })) << "without " << i;
    cluster.restart(i);
  }
  EXPECT_TRUE(held.held());
  EXPECT_EQ(c.counters().losses, 0U);
  EXPECT_FALSE(other.mutex("orders").try_acquire());
  EXPECT_EQ(other.status("orders").holder.value().token, held.token());
}

TEST_F(Etcd, PausedLeaderIsPassedOver) {
  auto c = make_client({.ttl = 6s});
  const auto held = c.mutex("orders").acquire();
  const auto leader = cluster.leader();
  cluster.pause(leader);
  const auto other = c.mutex("stock").try_acquire(patience);
  EXPECT_TRUE(other) << "another one leads now";
  const auto before = c.counters().renewals;
  EXPECT_TRUE(eventually([&] { return c.counters().renewals > before; }));
  EXPECT_TRUE(held.held());
  cluster.resume(leader);
  EXPECT_TRUE(cluster.await_answer(leader));
  EXPECT_EQ(c.status("orders").holder.value().token, held.token());
}

TEST_F(Etcd, WithoutAMajorityNothingIsGrantedAndTheHolderIsToldInTime) {
  auto c = make_client({.ttl = 3s});
  const auto held = c.mutex("orders").acquire();
  watched_token lost{held.lost()};
  cluster.pause(0);
  cluster.pause(1);
  client other{url(), {.operation_timeout = 500ms, .unreachable_limit = 1s}};
  const auto got = other.mutex("stock").acquire_result(1s);
  ASSERT_FALSE(got);
  EXPECT_TRUE(got.error().code == errc::store_unreachable ||
              got.error().code == errc::outcome_unknown)
      << got.error().message;
  EXPECT_FALSE(got.error().nodes.empty()) << "what each said";
  EXPECT_TRUE(lost.wait());
  EXPECT_EQ(held.why_lost(), loss::expired);
}

// A waiter's stream may be on the server that is killed.
TEST_F(Etcd, WaiterHearsOfAReleaseThoughItsServerIsKilled) {
  auto a = make_client();
  const auto seen = std::make_shared<recorder>();
  client b{url(), {.lock = {.ttl = 60s}, .observer = seen}};
  auto held = a.mutex("orders").acquire();
  std::optional<lease> got;
  std::thread waits{[&] { got = b.mutex("orders").try_acquire(patience); }};
  EXPECT_TRUE(seen->await(event::kind::waiting));
  const auto leader = cluster.leader();
  for (std::size_t i = 0; i < 2; ++i) {
    const auto victim = (leader + 1 + i) % cluster.size();
    cluster.kill9(victim);
    cluster.restart(victim);
  }
  EXPECT_TRUE(held.release());
  waits.join();
  EXPECT_TRUE(got);
}

TEST_F(Etcd, AskWhoseAnswerIsLostIsAnsweredOnceByTheNext) {
  fault_proxy proxy{one_server(), fault_proxy::listen_on::tcp, fault_proxy::speaks::http};
  client c{url_of(proxy.port()), {.lock = {.ttl = 60s}, .operation_timeout = 1s}};
  { const auto warm = c.mutex("stock").acquire(); }
  proxy.inject(fault::cut_before_reply, changes);
  auto held = c.mutex("orders").acquire();
  EXPECT_TRUE(proxy.await_faults(1));
  EXPECT_EQ(keys_of("orders"), 1U);
  EXPECT_EQ(c.status("orders").holder.value().token, held.token());
  EXPECT_TRUE(held.release());
  EXPECT_EQ(keys_of("orders"), 0U);
}

// The key that a late request puts is for an attempt that is over. It must not live on because the
// client goes on renewing its other locks.
TEST_F(Etcd, KeyThatComesLateIsNotKeptAliveByOtherLocks) {
  fault_proxy proxy{one_server(), fault_proxy::listen_on::tcp, fault_proxy::speaks::http};
  client c{url_of(proxy.port()), {.lock = {.ttl = 3s}, .operation_timeout = 1s}};
  const auto other = c.mutex("stock").acquire();
  proxy.inject(fault::hold_and_cut, changes);
  auto held = c.mutex("orders").acquire();
  ASSERT_TRUE(held.release());
  EXPECT_EQ(keys_of("orders"), 0U);

  proxy.let_go();
  ASSERT_TRUE(eventually([&] { return keys_of("orders") == 1; })) << "the late one was done";
  auto next = make_client().mutex("orders").try_acquire(patience);
  EXPECT_TRUE(next);
  EXPECT_TRUE(other.held()) << "it was moved to another lease";
  const auto before = c.counters().renewals;
  EXPECT_TRUE(eventually([&] { return c.counters().renewals > before; }));
  EXPECT_EQ(c.counters().losses, 0U);
}

TEST_F(Etcd, ReleaseWhoseAnswerIsLostIsTriedAgainAndSaysThatItDoesNotKnow) {
  fault_proxy proxy{one_server(), fault_proxy::listen_on::tcp, fault_proxy::speaks::http};
  client c{url_of(proxy.port()), {.lock = {.ttl = 60s}, .operation_timeout = 2s}};
  auto held = c.mutex("orders").acquire();
  proxy.inject(fault::cut_before_reply, changes);
  const auto said = held.release();
  ASSERT_FALSE(said);
  EXPECT_EQ(said.error().code, errc::outcome_unknown);
  EXPECT_EQ(keys_of("orders"), 0U);
}

TEST_F(Etcd, ReleaseThatNobodyWaitsForIsTriedAgain) {
  fault_proxy proxy{one_server(), fault_proxy::listen_on::tcp, fault_proxy::speaks::http};
  client c{url_of(proxy.port()), {.lock = {.ttl = 60s}}};
  {
    const auto held = c.mutex("orders").acquire();
    proxy.inject(fault::cut_before_send, changes);
  }
  EXPECT_TRUE(proxy.await_faults(1));
  EXPECT_TRUE(eventually([&] { return keys_of("orders") == 0; }));
  EXPECT_TRUE(c.mutex("orders").try_acquire());
}

// The one before it has to be answered first; who asks is told that, and not that he got no lease.
TEST_F(Etcd, AskBehindAReleaseThatIsNotAnsweredSaysSo) {
  fault_proxy proxy{one_server(), fault_proxy::listen_on::tcp, fault_proxy::speaks::http};
  client c{url_of(proxy.port()),
           {.lock = {.ttl = 60s}, .operation_timeout = 300ms, .release_budget = patience}};
  {
    const auto held = c.mutex("orders").acquire();
    proxy.inject(fault::hold_request, changes);
  }
  ASSERT_TRUE(proxy.await_faults(1));
  const auto got = c.mutex("orders").acquire_result(0s);
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code, errc::store_unreachable);
  EXPECT_NE(got.error().message.find("given back"), std::string::npos) << got.error().message;
  proxy.let_go();
  EXPECT_TRUE(eventually([&] { return c.mutex("orders").try_acquire().has_value(); }));
}

}  // namespace holdfast::test
