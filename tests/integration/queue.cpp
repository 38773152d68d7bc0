// Waiting on Redis: first come, first served, handed straight over; and each rule that keeps that
// safe, by what happens without it.
#include <future>
#include <thread>

#include <gmock/gmock.h>

#include "integration/queue_fixture.hpp"

using namespace std::chrono_literals;

namespace holdfast::test {

TEST_F(Queue, ServesInTheOrderOfComing) {
  client first = direct();
  auto held = first.mutex("orders").try_acquire();
  ASSERT_TRUE(held);
  constexpr std::size_t count = 5;
  std::vector<client> clients;
  std::vector<std::future<std::optional<lease>>> waits;
  for (std::size_t i = 0; i < count; ++i)
    clients.push_back(direct());
  for (std::size_t i = 0; i < count; ++i) {
    waits.push_back(wait_for(clients[i]));
    ASSERT_TRUE(eventually([&] { return waiting() == i + 1; }));
  }
  auto token = held->token();
  held.reset();
  for (auto& wait : waits) {
    auto next = wait.get();  // the others still wait: they cannot have it
    ASSERT_TRUE(next);
    EXPECT_GT(next->token(), token);
    token = next->token();
  }
  EXPECT_TRUE(eventually([&] { return nothing_left(); }));
}

TEST_F(Queue, ThousandDeadWaitersCostTheNextFewCalls) {
  client holder = direct();
  client waiter = direct();
  auto held = holder.mutex("orders").try_acquire();
  for (int i = 1; i <= 1000; ++i)
    add_dead_waiter(i);
  auto wait = wait_for(waiter);
  ASSERT_TRUE(eventually([&] { return waiting() == 1001; }));
  const auto before = scripts_run();
  EXPECT_TRUE(held->release());
  EXPECT_TRUE(wait.get());
  EXPECT_LE(scripts_run() - before, 6U);
}

TEST_F(Queue, WaiterThatFellSilentIsPassedOver) {
  client holder = direct();
  client waiter = direct();
  // Somebody listens there, but the attempt has not been heard of for longer than its claim TTL.
  raw_redis listener{server.where()};
  ASSERT_FALSE(listener.command({"SUBSCRIBE", inbox_called('5')}).is_error());
  add_dead_waiter(1, inbox_called('5'));
  static_cast<void>(server.command({"HSET", keys.waiters, std::string(31, '0') + "1", "1000"}));
  auto held = holder.mutex("orders").try_acquire();
  EXPECT_TRUE(held) << "the queue had nobody in it who lives";
  auto wait = wait_for(waiter);
  ASSERT_TRUE(eventually([&] { return waiting() == 1; }));
  held.reset();
  EXPECT_TRUE(wait.get());
}

TEST_F(Queue, CancelledAndTimedOutWaitsLeaveNothing) {
  client holder = direct();
  client waiter = direct();
  auto held = holder.mutex("orders").try_acquire();
  std::stop_source stop;
  auto wait = std::async(std::launch::async, [&] {
    return waiter.mutex("orders").try_acquire(forever, stop.get_token());
  });
  ASSERT_TRUE(eventually([&] { return waiting() == 1; }));
  stop.request_stop();
  EXPECT_FALSE(wait.get());
  EXPECT_EQ(waiting(), 0U);
  EXPECT_FALSE(waiter.mutex("orders").try_acquire(50ms));
  EXPECT_EQ(waiting(), 0U);
  EXPECT_TRUE(held->release());
  EXPECT_TRUE(nothing_left());
}

TEST_F(Queue, FreeButQueuedIsHandedToWhoWaits) {
  client holder = direct();
  client waiter = direct();
  auto held = holder.mutex("orders").try_acquire();
  auto wait = wait_for(waiter);
  ASSERT_TRUE(eventually([&] { return waiting() == 1; }));
  ASSERT_EQ(server.command({"DEL", "orders"}), "1");  // by hand: nobody is told
  client other = direct();
  EXPECT_FALSE(other.mutex("orders").try_acquire()) << "somebody was here before";
  EXPECT_TRUE(wait.get());
}

TEST_F(Queue, LostMessagesOnlyCostTime) {
  client holder = direct();
  client waiter = direct({.lock = {.ttl = 2s}});
  auto held = holder.mutex("orders").try_acquire();
  auto wait = wait_for(waiter);
  ASSERT_TRUE(eventually([&] { return waiting() == 1; }));
  // The inbox is taken away; the release finds nobody listening and passes the waiter over.
  ASSERT_NE(server.command({"CLIENT", "KILL", "TYPE", "pubsub"}), "0");
  held.reset();
  EXPECT_TRUE(wait.get());
}

// All of them, not only the one that reads for the others: each asks again long before its time.
TEST_F(Queue, InboxThatIsCutMakesEveryWaiterAskAtOnce) {
  client holder = direct({.lock = {.ttl = 600s}});
  client waiter = direct({.lock = {.ttl = 24h}});  // asks after half a minute by itself
  std::vector<lease> held;
  std::vector<std::future<bool>> waits;
  for (const std::string name : {"a", "b", "c"}) {
    held.push_back(holder.mutex(name).acquire());
    waits.push_back(std::async(std::launch::async, [&waiter, name] {
      return waiter.mutex(name).try_acquire(patience).has_value();
    }));
  }
  ASSERT_TRUE(eventually([&] { return waiter.counters().waiting_now == 3; }));
  const auto queued = [&](const std::string& name) {
    return exists(stores::redis::lock_keys{name}.queue);
  };
  ASSERT_TRUE(eventually([&] { return queued("a") && queued("b") && queued("c"); }));
  const auto before = scripts_run();
  ASSERT_NE(server.command({"CLIENT", "KILL", "TYPE", "pubsub"}), "0");
  EXPECT_TRUE(eventually([&] { return scripts_run() >= before + 3; }, 15s));
  held.clear();
  for (auto& one : waits)
    EXPECT_TRUE(one.get());
}

TEST_F(Queue, StaleGrantIsIgnored) {
  client holder = direct();
  client waiter = direct();
  auto held = holder.mutex("orders").try_acquire();
  ASSERT_TRUE(held);
  auto wait = wait_for(waiter);
  ASSERT_TRUE(eventually([&] { return waiting() == 1; }));
  const auto entry = server.command({"LINDEX", keys.queue, "0"});
  const auto id = entry.substr(0, 32);
  const std::string inbox{stores::redis::queue_entry::parse(entry)->inbox};
  // A message from before the latest answer: granted then, not taken up, and given to others since.
  ASSERT_EQ(
      server.command({"PUBLISH", inbox, id + ";" + to_string(held->token()) + ";5000;1;orders"}),
      "1");
  ASSERT_NE(wait.wait_for(300ms), std::future_status::ready) << "two holders";
  EXPECT_TRUE(held->release());
  EXPECT_TRUE(wait.get());
}

TEST_F(Queue, GrantForAnAttemptThatNobodyKnowsIsGivenBack) {
  client holder = direct();
  client waiter = direct();
  auto held = holder.mutex("orders").try_acquire();
  auto wait = wait_for(waiter);
  ASSERT_TRUE(eventually([&] { return waiting() == 1; }));
  const auto entry = server.command({"LINDEX", keys.queue, "0"});
  const std::string inbox{stores::redis::queue_entry::parse(entry)->inbox};
  add_dead_waiter(7, inbox);  // an attempt of that process that has gone without a trace
  static_cast<void>(server.command({"LREM", keys.queue, "1", entry}));
  static_cast<void>(server.command({"RPUSH", keys.queue, entry}));
  held.reset();
  EXPECT_TRUE(wait.get()) << "the stray grant was released long before its claim TTL";
}

// Before the connection broke, the attempt learnt of its grant by asking, and the message about
// that is not taken for a stray grant. With the connection that message is lost: what comes later
// for the same attempt is another grant, which nobody wants.
TEST_F(Queue, StrayGrantAfterAReconnectIsGivenBack) {
  client holder = direct();
  client waiter = through_proxy({.lock = {.ttl = 4s}});
  auto held = holder.mutex("orders").try_acquire();
  auto wait = wait_for(waiter);
  ASSERT_TRUE(eventually([&] { return waiting() == 1; }));
  const auto text = server.command({"LINDEX", keys.queue, "0"});
  proxy.lose_messages(true);
  held.reset();
  auto got = wait.get();  // by asking
  ASSERT_TRUE(got);
  ASSERT_TRUE(got->release());
  proxy.lose_messages(false);

  // Another thread of that process waits, and so reads the inbox, before and after the break.
  auto other = holder.mutex("other").try_acquire();
  auto reads =
      std::async(std::launch::async, [&] { return waiter.mutex("other").try_acquire(patience); });
  const stores::redis::lock_keys other_keys{"other"};
  const auto others = [&] { return server.command({"LLEN", other_keys.queue}); };
  ASSERT_TRUE(eventually([&] { return others() == "1"; }));
  const auto asked = proxy.seen("SUBSCRIBE");
  ASSERT_NE(server.command({"CLIENT", "KILL", "TYPE", "pubsub"}), "0");
  ASSERT_TRUE(proxy.await_request("SUBSCRIBE", asked + 1));
  const auto parsed = stores::redis::queue_entry::parse(text);
  ASSERT_TRUE(parsed);
  const std::string inbox{parsed->inbox};
  ASSERT_TRUE(eventually([&] {
    return server.command({"PUBSUB", "NUMSUB", inbox}) == inbox + "\n1";
  }));

  // A late ask of the attempt that is over: it is in line again, and is granted the lock.
  held = holder.mutex("orders").try_acquire();
  ASSERT_TRUE(held);
  auto entry = *parsed;
  entry.claim = 60s;
  const auto now = server.command({"TIME"});
  static_cast<void>(server.command(
      {"HSET", keys.waiters, text.substr(0, 32), now.substr(0, now.find('\n')) + "999"}));
  static_cast<void>(server.command({"RPUSH", keys.queue, entry.text()}));
  EXPECT_TRUE(held->release());
  EXPECT_TRUE(eventually([&] { return !exists("orders"); })) << "long before its claim TTL";
  other.reset();
}

TEST_F(Queue, ForeignHolderIsWaitedForByLooking) {
  client waiter = direct();
  ASSERT_EQ(server.command({"SET", "orders", "somebody", "PX", "60000"}), "OK");
  auto wait = wait_for(waiter);
  ASSERT_TRUE(eventually([&] { return waiting() == 1; }));
  ASSERT_EQ(server.command({"DEL", "orders"}), "1");
  EXPECT_TRUE(wait.get());
}

TEST_F(Queue, FullQueueIsAClearError) {
  client holder = direct();
  client waiter = direct();
  auto held = holder.mutex("orders").try_acquire();
  static_cast<void>(
      server.command({"EVAL", "for i = 1, 10000 do redis.call('RPUSH', KEYS[1], 'x') end return 1",
                      "1", keys.queue}));
  EXPECT_EQ(thrown_by([&] { static_cast<void>(waiter.mutex("orders").try_acquire(5s)); }),
            errc::overloaded);
  EXPECT_EQ(waiting(), 10'000U);
}

TEST_F(Queue, HandOverTakesTwoScripts) {
  client a = direct();
  client b = direct();
  auto held = a.mutex("orders").try_acquire();
  auto warm = wait_for(b);
  ASSERT_TRUE(eventually([&] { return waiting() == 1; }));
  held.reset();
  held = warm.get();  // b's inbox is open now
  auto wait = wait_for(a);
  ASSERT_TRUE(eventually([&] { return waiting() == 1; }));
  held.reset();
  held = wait.get();
  ASSERT_TRUE(held);
  const auto before = scripts_run();
  auto again = wait_for(b);
  ASSERT_TRUE(eventually([&] { return waiting() == 1; }));
  held.reset();
  held = again.get();
  EXPECT_TRUE(held);
  EXPECT_EQ(scripts_run() - before, 2U) << "one to ask, one to release and grant";
}

TEST_F(Queue, BreakingALockGivesItToWhoWaits) {
  client holder = direct();
  client waiter = direct();
  auto held = holder.mutex("orders").try_acquire();
  auto wait = wait_for(waiter);
  ASSERT_TRUE(eventually([&] { return waiting() == 1; }));
  waiter.break_lock("orders", held->token());
  EXPECT_TRUE(wait.get());
}

// --- between threads of one process
// ---------------------------------------------------------------

class Cohort : public Queue {};

TEST_F(Cohort, ThreadsHandOverWithoutTheStoreEachWithATokenOfItsOwn) {
  constexpr int threads = 8;
  constexpr int rounds = 200;
  client c = direct();
  fence::gate gate;
  std::atomic<int> inside{0};
  std::atomic<int> wrong{0};
  const auto before = scripts_run();
  std::vector<std::thread> all;
  for (int t = 0; t < threads; ++t) {
    all.emplace_back([&] {
      for (int i = 0; i < rounds; ++i) {
        const lease held = c.mutex("orders").acquire();
        if (++inside != 1) ++wrong;
        if (held.token() <= gate.highest() || !gate.accept(held.token())) ++wrong;
        --inside;
      }
    });
  }
  for (auto& t : all)
    t.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_LT(scripts_run() - before, 2U * threads * rounds) << "some went from hand to hand";
  EXPECT_TRUE(eventually([&] { return nothing_left(); }));
}

TEST_F(Cohort, OtherProcessIsServedWithinTheBound) {
  client busy = direct();
  client other = direct();
  std::atomic<bool> stop{false};
  std::vector<std::thread> all;
  for (int t = 0; t < 4; ++t) {
    all.emplace_back([&] {
      while (!stop) {
        const lease held = busy.mutex("orders").acquire();
      }
    });
  }
  for (int i = 0; i < 20; ++i)
    EXPECT_TRUE(other.mutex("orders").try_acquire(patience)) << i;
  stop = true;
  for (auto& t : all)
    t.join();
}

TEST_F(Cohort, CancelledThreadLeavesTheOthersTheirTurn) {
  client c = direct();
  auto held = c.mutex("orders").acquire();
  std::stop_source stop;
  auto gone = std::async(std::launch::async,
                         [&] { return c.mutex("orders").try_acquire(forever, stop.get_token()); });
  auto stays = wait_for(c);
  stop.request_stop();
  EXPECT_FALSE(gone.get());
  EXPECT_TRUE(held.release());
  EXPECT_TRUE(stays.get());
}

TEST_F(Cohort, LossFreesTheOthersHere) {
  client c = direct({.lock = {.ttl = 1s, .renew = false}});
  auto held = c.mutex("orders").acquire();
  auto next = wait_for(c);
  auto got = next.get();  // although `held` is never given back
  ASSERT_TRUE(got);
  EXPECT_FALSE(held.held());
  EXPECT_GT(got->token(), held.token());
}

TEST_F(Cohort, AnyTokenOfTheBlockBreaksTheLock) {
  client c = direct();
  const std::string value = std::string(32, 'a') +
                            ";holdfast=1;token=100;block=3;since=1700000000000;host=h;pid=1;label=";
  ASSERT_EQ(server.command({"SET", "orders", value, "PX", "60000"}), "OK");
  EXPECT_EQ(thrown_by([&] { c.break_lock("orders", fencing_token{103}); }), errc::not_held);
  EXPECT_EQ(thrown_by([&] { c.break_lock("orders", fencing_token{99}); }), errc::not_held);
  EXPECT_NO_THROW(c.break_lock("orders", fencing_token{102}));
  EXPECT_FALSE(exists("orders"));
}

}  // namespace holdfast::test
