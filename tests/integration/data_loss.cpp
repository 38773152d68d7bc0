// Scenarios 23, 25 and 31: the server loses the lock, its memory, or its place in history.
#include <thread>

#include "support/naive_lock.hpp"
#include "support/proxied_redis.hpp"
#include "support/saved_data.hpp"

using namespace std::chrono_literals;

namespace holdfast::test {

namespace {

// Grants tokens, saves, grants more, crashes, comes back with what was saved, grants again.
// True if a token that was granted before the crash is granted again, or one below it.
template <class Grant, class Save>
bool repeats_tokens(redis_server& server, Grant grant, Save save) {
  std::uint64_t last = 0;
  for (int i = 0; i < 3; ++i)
    last = grant();
  save();
  const saved_data old{server.folder()};
  if (old.empty()) throw std::runtime_error{"the server saved nothing"};
  for (int i = 0; i < 5; ++i)
    last = grant();
  server.kill9();
  old.put_back();
  server.restart();
  return grant() <= last;
}

std::uint64_t holdfast_token(const redis_server& server) {
  client c{server.url(), {.lock = {.ttl = 60s}}};
  lease held = c.mutex("orders").acquire();
  const std::uint64_t token = held.token().value();
  EXPECT_TRUE(held.release());
  return token;
}

std::uint64_t naive_token(const redis_server& server) {
  return static_cast<std::uint64_t>(naive_lock{server.where(), "naive"}.next_token());
}

}  // namespace

// 23, an old RDB: first what a plain counter does with it.
TEST(StaleCounter, PlainIncrRepeatsTokensAfterAnOldRdb) {
  redis_server server;
  EXPECT_TRUE(repeats_tokens(
      server, [&] { return naive_token(server); }, [&] { (void)server.command({"SAVE"}); }));
}

TEST(StaleCounter, TokensIncreaseAfterAnOldRdb) {
  redis_server server;
  EXPECT_FALSE(repeats_tokens(
      server, [&] { return holdfast_token(server); }, [&] { (void)server.command({"SAVE"}); }));
}

// 23, an AOF that ends a second before the crash: what everysec may leave.
const redis_server_options everysec{.config = {"appendonly yes", "appendfsync everysec"}};

TEST(StaleCounter, PlainIncrRepeatsTokensAfterAnEverysecAof) {
  redis_server server{everysec};
  EXPECT_TRUE(repeats_tokens(
      server, [&] { return naive_token(server); }, [] {}));
}

TEST(StaleCounter, TokensIncreaseAfterAnEverysecAof) {
  redis_server server{everysec};
  EXPECT_FALSE(repeats_tokens(
      server, [&] { return holdfast_token(server); }, [] {}));
}

// 23 and 24, nothing on disk.
TEST(ServerCrash, WithoutPersistenceTheHolderHearsOfItsLossAndTokensGoOn) {
  redis_server server;
  client c{server.url(), {.lock = {.ttl = 5s}}};
  lease held = c.mutex("orders").acquire();
  watched_token lost{held.lost()};
  server.kill9();
  server.restart();
  ASSERT_TRUE(lost.wait());
  EXPECT_EQ(held.why_lost(), loss::deleted);
  const lease next = c.mutex("orders").acquire();
  EXPECT_GT(next.token(), held.token());
}

TEST(ServerCrash, WithAppendfsyncAlwaysTheLockSurvives) {
  redis_server server{{.config = {"appendonly yes", "appendfsync always"}}};
  client a{server.url(), {.lock = {.ttl = 20s}}};
  client b{server.url()};
  lease held = a.mutex("orders").acquire();
  server.kill9();
  server.restart();
  EXPECT_FALSE(b.mutex("orders").try_acquire());
  EXPECT_TRUE(eventually([&] { return held.renew().has_value(); }));
  EXPECT_TRUE(held.held());
  EXPECT_EQ(b.status("orders").holder.value().token, held.token());
  EXPECT_TRUE(held.release());
}

class DataLoss : public proxied_redis {};

// 25
TEST_F(DataLoss, FlushallIsALossAndTokensGoOn) {
  client c = direct({.lock = {.ttl = 2'100ms}});
  lease held = c.mutex("orders").acquire();
  watched_token lost{held.lost()};
  ASSERT_EQ(server.command({"FLUSHALL"}), "OK");
  ASSERT_TRUE(lost.wait());
  EXPECT_EQ(held.why_lost(), loss::deleted);
  EXPECT_GT(c.mutex("orders").acquire().token(), held.token());
}

// 25: memory is short and the server throws keys away, the lock's and the counter's included.
TEST_F(DataLoss, EvictionIsALossAndTokensGoOn) {
  client c = direct({.lock = {.ttl = 20s}});
  lease held = c.mutex("orders").acquire();
  ASSERT_EQ(server.command({"CONFIG", "SET", "maxmemory-policy", "allkeys-random"}), "OK");
  ASSERT_EQ(server.command({"CONFIG", "SET", "maxmemory", "4mb"}), "OK");
  raw_redis filler{server.where()};
  const std::string junk(20'000, 'x');
  for (int i = 0; exists("orders"); ++i) {
    ASSERT_LT(i, 100'000) << "never evicted";
    (void)filler.command({"SET", "junk/" + std::to_string(i), junk});
  }
  const auto renewed = held.renew();
  ASSERT_FALSE(renewed);
  EXPECT_EQ(renewed.error().code, errc::lease_lost);
  EXPECT_EQ(held.why_lost(), loss::deleted);
  const auto next = c.mutex("orders").try_acquire(patience);
  ASSERT_TRUE(next) << "nothing is in the way, and still it is not granted";
  EXPECT_GT(next->token(), held.token());
}

// 25
TEST_F(DataLoss, ScriptFlushIsNotNoticed) {
  client c = direct({.lock = {.ttl = 2'100ms}});
  lease held = c.mutex("orders").acquire();
  ASSERT_EQ(server.command({"SCRIPT", "FLUSH"}), "OK");
  EXPECT_TRUE(held.renew());
  const auto before = c.counters().renewals;
  ASSERT_EQ(server.command({"SCRIPT", "FLUSH"}), "OK");
  ASSERT_TRUE(eventually([&] { return c.counters().renewals > before + 1; }));
  ASSERT_EQ(server.command({"SCRIPT", "FLUSH"}), "OK");
  EXPECT_TRUE(c.mutex("stock").try_acquire());
  ASSERT_EQ(server.command({"SCRIPT", "FLUSH"}), "OK");
  EXPECT_TRUE(held.release());
  EXPECT_FALSE(exists("orders"));
}

TEST_F(DataLoss, DestructorReleasesThoughTheServerForgotTheScript) {
  client c = direct({.lock = {.ttl = 60s}});
  {
    const lease held = c.mutex("orders").acquire();
    ASSERT_EQ(server.command({"SCRIPT", "FLUSH"}), "OK");
  }
  EXPECT_TRUE(eventually([&] { return !exists("orders"); }));
}

// 25
TEST_F(DataLoss, KeyOfAnotherTypeIsAClearErrorAndIsLeftAlone) {
  client c = direct();
  (void)server.command({"HSET", "orders", "field", "value"});
  std::string what;
  EXPECT_EQ(thrown_by([&] { (void)c.mutex("orders").acquire(); }, &what), errc::wrong_type);
  EXPECT_NE(what.find("not a lock"), std::string::npos) << what;
  EXPECT_EQ(server.command({"HGET", "orders", "field"}), "value");
}

TEST_F(DataLoss, LockReplacedByAnotherTypeIsALoss) {
  client c = direct({.lock = {.ttl = 2'100ms}});
  lease held = c.mutex("orders").acquire();
  watched_token lost{held.lost()};
  (void)server.command({"DEL", "orders"});
  (void)server.command({"LPUSH", "orders", "value"});
  ASSERT_TRUE(lost.wait());
  EXPECT_EQ(held.why_lost(), loss::taken);
  EXPECT_EQ(server.command({"LLEN", "orders"}), "1");
}

// 25: somebody else's lock that never expires (B's victim) is waited for, and said to be one.
TEST_F(DataLoss, KeyWithoutTtlIsWaitedForAndShown) {
  const auto seen = std::make_shared<recorder>();
  client c = direct({.lock = {.ttl = 60s}, .observer = seen});
  ASSERT_EQ(server.command({"SET", "orders", "for ever"}), "OK");
  EXPECT_FALSE(c.mutex("orders").try_acquire());
  const lock_status status = c.status("orders");
  ASSERT_TRUE(status.holder);
  EXPECT_TRUE(status.holder->foreign);
  EXPECT_EQ(status.holder->value, "for ever");
  EXPECT_FALSE(status.remaining) << "it never lets go by itself";
  std::optional<lease> got;
  std::thread waiter{[&] { got = c.mutex("orders").try_acquire(patience); }};
  EXPECT_TRUE(seen->await(event::kind::waiting, 1));
  EXPECT_EQ(server.command({"DEL", "orders"}), "1");
  waiter.join();
  EXPECT_TRUE(got);
}

// 31: deleted by hand: told, and never renewed again.
TEST_F(DataLoss, DeletedKeyStopsRenewal) {
  client c = through_proxy({.lock = {.ttl = 2'100ms}});
  lease held = c.mutex("orders").acquire();
  watched_token lost{held.lost()};
  ASSERT_EQ(server.command({"DEL", "orders"}), "1");
  ASSERT_TRUE(lost.wait());
  EXPECT_EQ(held.why_lost(), loss::deleted);
  const auto renewals = proxy.seen(renews);
  let_pass(3s);
  EXPECT_EQ(proxy.seen(renews), renewals);
  EXPECT_FALSE(exists("orders"));
}

// 31: lost once, acquired again, and renewed like any other.
TEST_F(DataLoss, LockAcquiredAgainAfterALossIsRenewedAgain) {
  client c = direct({.lock = {.ttl = 2'100ms}});
  mutex orders = c.mutex("orders");
  {
    const lease first = orders.acquire();
    watched_token lost{first.lost()};
    ASSERT_EQ(server.command({"DEL", "orders"}), "1");
    ASSERT_TRUE(lost.wait());
  }
  const lease again = orders.acquire();
  const auto before = c.counters().renewals;
  ASSERT_TRUE(eventually([&] { return c.counters().renewals >= before + 4; }));
  EXPECT_TRUE(again.held());
  EXPECT_TRUE(exists("orders"));
}

// 12: a renewal with no time in it must not delete the key and call that renewed.
TEST_F(DataLoss, RenewalScriptRefusesATtlOfZeroOrLess) {
  client c = direct({.lock = {.ttl = 60s, .renew = false}});
  const lease held = c.mutex("orders").acquire();
  const std::string source{stores::redis::scripts::renew.source};
  for (const char* ttl : {"0", "-1", "", "abc"}) {
    const std::string answer =
        server.command({"EVAL", source, "1", "orders", std::string{held.owner()}, ttl});
    EXPECT_TRUE(answer.starts_with("(error)")) << ttl << ": " << answer;
    EXPECT_GT(pttl("orders"), 30s) << ttl;
  }
}

}  // namespace holdfast::test
