// The store came back empty, and the holder heard of it only when its next renewal was due: another
// had the lock meanwhile, for up to a third of a TTL.
#include "runtime/clock.hpp"
#include "runtime/socket.hpp"
#include "stores/redis/connection_pool.hpp"
#include "support/proxied_redis.hpp"

using namespace std::chrono_literals;

namespace holdfast::test {

class EmptyStore : public proxied_redis {};

TEST_F(EmptyStore, IsNoticedWhenItsConnectionEnds) {
  client c = direct({.lock = {.ttl = 600s}});  // the next renewal is due in 200 s
  std::vector<lease> all;
  for (int i = 0; i < 150; ++i)
    all.push_back(c.mutex("lock/" + std::to_string(i)).acquire());
  ASSERT_TRUE(all.front().renew());
  // So that there is a connection for renewals: it is made by the first of them.
  server.kill9();
  server.restart();
  for (const lease& one : all) {
    watched_token lost{one.lost()};
    ASSERT_TRUE(lost.wait());
    EXPECT_EQ(one.why_lost(), loss::deleted);
  }
}

// The only connection is that of renewals, and it ends under one that does not concern all leases.
TEST_F(EmptyStore, IsNoticedByAllWhenTheRenewalOfOneIsCutOff) {
  client c = through_proxy({.lock = {.ttl = 600s}});
  lease distant = c.mutex("distant").acquire();
  lease near = c.mutex("near", {.ttl = 3s}).acquire();
  ASSERT_TRUE(eventually([&] { return c.counters().renewals > 0; }));
  // Those for requests are not made again, for there are none.
  ASSERT_NE(server.command({"CLIENT", "KILL", "TYPE", "normal"}), "0");
  const auto before = c.counters().renewals;
  ASSERT_TRUE(eventually([&] { return c.counters().renewals >= before + 3; }));
  watched_token lost{distant.lost()};
  proxy.inject(fault::hold_request, renews);
  ASSERT_TRUE(proxy.await_faults(1));
  server.kill9();
  server.restart();
  ASSERT_TRUE(lost.wait());
  EXPECT_EQ(distant.why_lost(), loss::deleted);
}

// A server that was away may have come back empty, however its end was noticed.
TEST_F(EmptyStore, IsSuspectedWhenAConnectionIsMadeAnew) {
  int doubts = 0;
  stores::redis::connection_pool::hooks tell;
  tell.doubtful = [&] { ++doubts; };
  stores::redis::endpoint where;
  where.node = "node";
  where.connect = [&](core::time_point until) {
    return runtime::connect_unix(server.socket_path(), until);
  };
  stores::redis::connection_pool to{stores::redis::make_dialer(where), {}, tell};
  stores::redis::command ping{1};
  ping.arg("PING");
  const auto answers = [&] {
    return stores::wait_here<result<stores::redis::reply>>([&](auto& by, auto done) {
             to.look(stores::redis::script_call{ping.bytes()}, runtime::now() + patience, {}, by,
                     std::move(done));
           })
        .has_value();
  };
  ASSERT_TRUE(answers());
  ASSERT_TRUE(answers());
  EXPECT_EQ(doubts, 0);
  to.renounce();
  ASSERT_TRUE(answers());
  EXPECT_EQ(doubts, 1);
}

TEST_F(EmptyStore, ServerThatEndsEveryConnectionIsNotAskedWithoutAPause) {
  client c = through_proxy({.lock = {.ttl = 600s}});
  std::vector<lease> all;  // more than one request carries
  for (int i = 0; i < 150; ++i)
    all.push_back(c.mutex("lock/" + std::to_string(i)).acquire());
  proxy.inject(fault::cut_before_reply, renews, 1'000'000);
  ASSERT_NE(server.command({"CLIENT", "KILL", "TYPE", "normal"}), "0");
  ASSERT_TRUE(proxy.await_request(renews));
  let_pass(2s);
  EXPECT_LT(proxy.seen(renews), 400U);
  proxy.clear();
  for (lease& one : all)
    EXPECT_TRUE(one.release());
}

}  // namespace holdfast::test
