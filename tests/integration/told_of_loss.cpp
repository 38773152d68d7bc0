// A holder hears of what others do to its lock when it happens, not when its next renewal is due.
#include <thread>

#include <gtest/gtest.h>

#include "support/certificates.hpp"
#include "support/proxied_redis.hpp"

using namespace std::chrono_literals;

namespace holdfast::test {

namespace {

// The second renewal is due in 200 s, so what is told within the patience of a test was told.
constexpr std::chrono::milliseconds distant_ttl = 600s;

// From a lease's first renewal on, a second after its grant, the server tells.
void await_told(const client& c, std::uint64_t renewals = 1) {
  ASSERT_TRUE(eventually([&] { return c.counters().renewals >= renewals; }));
}

class ToldOfLoss : public testing::Test {
 protected:
  void expect_told(loss why) {
    EXPECT_TRUE(lost_.wait());
    EXPECT_EQ(held_.why_lost(), why);
  }
  void SetUp() override { await_told(holder_); }

  redis_server server_;
  client holder_{server_.url(), {.lock = {.ttl = distant_ttl}}};
  client other_{server_.url()};
  lease held_ = holder_.mutex("orders").acquire();
  watched_token lost_{held_.lost()};
};

}  // namespace

TEST_F(ToldOfLoss, ByABreak) {
  other_.break_lock("orders", held_.token());
  expect_told(loss::deleted);
}

TEST_F(ToldOfLoss, ByABreakThatHandsTheLockToAWaiter) {
  std::optional<lease> got;
  std::jthread waiter{[&] { got = other_.mutex("orders").try_acquire(patience); }};
  client looks{server_.url()};
  ASSERT_TRUE(eventually([&] { return looks.status("orders").waiting == 1; }));
  looks.break_lock("orders", held_.token());
  waiter.join();
  ASSERT_TRUE(got);
  expect_told(loss::taken);
  EXPECT_TRUE(got->held());
}

TEST_F(ToldOfLoss, ByADeletedKey) {
  ASSERT_EQ(server_.command({"DEL", "orders"}), "1");
  expect_told(loss::deleted);
}

TEST_F(ToldOfLoss, ByAnOverwrittenKey) {
  ASSERT_EQ(server_.command({"SET", "orders", "mine"}), "OK");
  expect_told(loss::taken);
}

TEST_F(ToldOfLoss, ByFlushall) {
  ASSERT_EQ(server_.command({"FLUSHALL"}), "OK");
  expect_told(loss::deleted);
}

TEST_F(ToldOfLoss, ByAKeyThatExpiresEarly) {
  ASSERT_EQ(server_.command({"PEXPIRE", "orders", "1"}), "1");
  // The change of its expiry is told, too: whatever the renewal finds then, the holder is right.
  EXPECT_TRUE(eventually([&] {
    return lost_.has_fired() || server_.command({"PTTL", "orders"}) > "500000";
  }));
  if (lost_.has_fired()) {
    EXPECT_EQ(held_.why_lost(), loss::deleted);
  } else {
    EXPECT_TRUE(held_.held());
  }
}

// The change of one lock is a reason to renew that one, and no other.
TEST_F(ToldOfLoss, OnlyTheLeaseConcernedIsRenewed) {
  std::vector<lease> others;
  for (int i = 0; i < 50; ++i)
    others.push_back(holder_.mutex("other/" + std::to_string(i)).acquire());
  await_told(holder_, 51);
  const auto before = holder_.counters().renewals;
  ASSERT_EQ(server_.command({"DEL", "other/7"}), "1");
  watched_token lost{others[7].lost()};
  ASSERT_TRUE(lost.wait());
  EXPECT_EQ(holder_.counters().renewals, before);
  EXPECT_TRUE(held_.held());
}

TEST_F(ToldOfLoss, GivingBackRenewsNothing) {
  std::vector<lease> others;
  for (int i = 0; i < 50; ++i)
    others.push_back(holder_.mutex("other/" + std::to_string(i)).acquire());
  await_told(holder_, 51);
  const auto before = holder_.counters().renewals;
  for (auto& one : others)
    ASSERT_TRUE(one.release());
  // Comes behind all that was to be told of those.
  ASSERT_EQ(server_.command({"DEL", "orders"}), "1");
  expect_told(loss::deleted);
  EXPECT_EQ(holder_.counters().renewals, before);
}

TEST_F(ToldOfLoss, AKeyThatIsChangedAllTheTimeIsNotAskedAboutAllTheTime) {
  const auto value = server_.command({"GET", "orders"});
  const auto before = holder_.counters().renewals;
  const auto began = std::chrono::steady_clock::now();
  raw_redis touches{server_.where()};
  for (int i = 0; i < 3000; ++i)
    ASSERT_FALSE(touches.command({"SET", "orders", value, "KEEPTTL"}).is_error());
  const auto took = std::chrono::steady_clock::now() - began;
  EXPECT_LE(holder_.counters().renewals - before, static_cast<std::uint64_t>(took / 100ms) + 2);
  EXPECT_TRUE(held_.held());
  ASSERT_EQ(server_.command({"DEL", "orders"}), "1");
  expect_told(loss::deleted);
}

TEST_F(ToldOfLoss, AfterItsConnectionWasMadeAnew) {
  const auto before = holder_.counters().renewals;
  ASSERT_NE(server_.command({"CLIENT", "KILL", "TYPE", "normal"}), "0");
  await_told(holder_, before + 1);
  ASSERT_EQ(server_.command({"DEL", "orders"}), "1");
  expect_told(loss::deleted);
}

// A waiter that was handed the lock is a holder like any other.
TEST_F(ToldOfLoss, AlsoTheNextHolder) {
  client next{server_.url(), {.lock = {.ttl = distant_ttl}}};
  std::optional<lease> got;
  std::jthread waiter{[&] { got = next.mutex("orders").try_acquire(patience); }};
  ASSERT_TRUE(eventually([&] { return other_.status("orders").waiting == 1; }));
  ASSERT_TRUE(held_.release());
  waiter.join();
  ASSERT_TRUE(got);
  await_told(next);
  watched_token lost{got->lost()};
  other_.break_lock("orders", got->token());
  EXPECT_TRUE(lost.wait());
}

TEST(ToldOfLossOf, RedissonsLock) {
  const redis_server server;
  client holder{server.url(), {.lock = {.ttl = distant_ttl}}};
  redisson::rlock orders{holder, "orders"};
  const lease held = orders.acquire();
  watched_token lost{held.lost()};
  await_told(holder);
  client other{server.url()};
  EXPECT_TRUE(redisson::rlock(other, "orders").force_unlock());
  EXPECT_TRUE(lost.wait());
}

TEST(ToldOfLossOf, ALockUnderAPrefixInAnotherDatabase) {
  const redis_server server;
  const auto url = server.url() + "?db=3&prefix=app:";
  client holder{url, {.lock = {.ttl = distant_ttl}}};
  const lease held = holder.mutex("orders").acquire();
  watched_token lost{held.lost()};
  await_told(holder);
  client{url}.break_lock("orders", held.token());
  EXPECT_TRUE(lost.wait());
}

TEST(ToldOfLossOver, Tls) {
  const authority ours{"our authority"};
  const redis_server server{
      {.tcp = true, .tls = server_tls{.shows = ours.issue("server"), .authority = ours.file()}}};
  client holder{server.tcp_url(), {.lock = {.ttl = distant_ttl}}};
  const lease held = holder.mutex("orders").acquire();
  watched_token lost{held.lost()};
  await_told(holder);
  ASSERT_EQ(server.command({"DEL", "orders"}), "1");
  EXPECT_TRUE(lost.wait());
}

// What others hold of a semaphore changes all the time: that is no reason to ask.
TEST(ToldOfLossOf, ASemaphoreOthersChangeNothing) {
  const redis_server server;
  client holder{server.url(), {.lock = {.ttl = distant_ttl}}};
  const lease held = holder.semaphore("encoders", 3).acquire();
  const lease marks = holder.mutex("mark").acquire();
  await_told(holder, 2);
  const auto before = holder.counters().renewals;
  client other{server.url()};
  for (int i = 0; i < 100; ++i)
    ASSERT_TRUE(other.semaphore("encoders", 3).acquire().release());
  watched_token lost{marks.lost()};
  ASSERT_EQ(server.command({"DEL", "mark"}), "1");
  ASSERT_TRUE(lost.wait());
  EXPECT_EQ(holder.counters().renewals, before);
  EXPECT_TRUE(held.held());
}

// Where access rules refuse tracking, a loss is heard of at the next renewal, as ever.
TEST(ToldOfLossWithout, TheRightToTrack) {
  const redis_server server;
  client holder{"unix:" + server.socket_path(), {.lock = {.ttl = 3s}}};
  ASSERT_EQ(server.command({"ACL", "SETUSER", "default", "-client|tracking"}), "OK");
  lease held = holder.mutex("orders").acquire();
  watched_token lost{held.lost()};
  await_told(holder, 2);
  EXPECT_TRUE(held.held());
  ASSERT_EQ(server.command({"DEL", "orders"}), "1");
  EXPECT_TRUE(lost.wait());
  EXPECT_EQ(held.why_lost(), loss::deleted);
}

}  // namespace holdfast::test
