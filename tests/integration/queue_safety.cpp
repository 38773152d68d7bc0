// The queue when things go wrong: each rule that keeps a hand-over safe, by what happens without
// it.
#include <atomic>
#include <future>
#include <thread>

#include <gmock/gmock.h>

#include "integration/queue_fixture.hpp"
#include "support/holder_process.hpp"

using namespace std::chrono_literals;

namespace holdfast::test {

using testing::HasSubstr;
using testing::Not;

class QueueSafety : public Queue {
 protected:
  // The release script, as the holder's own client would run it.
  [[nodiscard]] std::string release_by_hand() const {
    const auto id = server.command({"GET", keys.lock}).substr(0, 32);
    return server.command(
        {"EVALSHA", releases, "4", keys.lock, keys.slot, keys.queue, keys.waiters, id, ""});
  }
  [[nodiscard]] std::string receivers(const std::string& inbox) const {
    const auto said = server.command({"PUBSUB", "NUMSUB", inbox});
    return said.substr(said.rfind('\n') + 1);
  }
  // With this TTL a waiter has a claim TTL of a second, and asks every quarter of one.
  static constexpr auto ttl = 2s;
  static constexpr auto claim = 1s;
};

// A turn of a cohort uses all of them, faster than the clock could make up for it.
TEST_F(QueueSafety, TokensThatAreReservedAreGrantedToNobodyElse) {
  constexpr std::uint64_t counter = 9'000'000'000'000'000;  // ahead of the clock
  const auto acquire = [&](char id) {
    const auto said = server.command({"EVALSHA", asks, "4", keys.lock, keys.slot, keys.queue,
                                      keys.waiters, std::string(32, id), "60000", "1", "2",
                                      "host=h;pid=1;label=", "", "100", "64"});
    return std::stoull(said.substr(said.find('\n') + 1));
  };
  ASSERT_EQ(server.command({"HSET", keys.slot, "layout", "1", "token", std::to_string(counter)}),
            "2");
  EXPECT_EQ(acquire('a'), counter + 1);
  EXPECT_EQ(release_by_hand(), "1");
  EXPECT_EQ(acquire('b'), counter + 1 + 64);
}

// Short of memory a server refuses what sets, and not what takes away.
TEST_F(QueueSafety, ReleaseHandsOverAlthoughMemoryIsShort) {
  client holder = direct();
  client waiter = direct();
  auto held = holder.mutex("orders").acquire();
  auto wait = wait_for(waiter);
  ASSERT_TRUE(eventually([&] { return waiting() == 1; }));
  ASSERT_EQ(server.command({"CONFIG", "SET", "maxmemory", "1"}), "OK");
  ASSERT_THAT(server.command({"SET", "x", "y"}), HasSubstr("OOM"));
  EXPECT_TRUE(held.release());
  auto next = wait.get();
  ASSERT_TRUE(next);
  EXPECT_THAT(server.command({"GET", "orders"}), testing::StartsWith(std::string{next->owner()}));
  EXPECT_TRUE(next->renew());
  EXPECT_TRUE(next->release());
  EXPECT_TRUE(nothing_left());
}

TEST_F(QueueSafety, OneCallPassesOverABoundedNumberOfDeadWaiters) {
  constexpr std::size_t in_one_call = 500;
  client holder = direct();
  auto held = holder.mutex("orders").acquire();
  for (int i = 1; i <= 1100; ++i)
    add_dead_waiter(i);
  EXPECT_EQ(release_by_hand(), "2") << "free, and more to be done";
  EXPECT_FALSE(exists("orders"));
  EXPECT_EQ(waiting(), 1100 - in_one_call);
  EXPECT_TRUE(holder.mutex("orders").try_acquire()) << "whoever asks does the rest";
  EXPECT_FALSE(exists(keys.queue));
}

TEST_F(QueueSafety, JoinsOnlyWithAnOpenInbox) {
  client holder = direct();
  client waiter = through_proxy();
  auto held = holder.mutex("orders").acquire();
  auto wait = wait_for(waiter);
  ASSERT_TRUE(eventually([&] { return waiting() == 1; }));
  bool open = false;
  for (const auto& request : proxy.requests()) {
    open = open || request.find("SUBSCRIBE") != std::string::npos;
    const bool joins = request.find(asks) != std::string::npos &&
                       request.find(stores::redis::inbox_prefix) != std::string::npos;
    EXPECT_TRUE(open || !joins) << "a grant would have been lost";
  }
  EXPECT_TRUE(held.release());
  EXPECT_TRUE(wait.get());
}

TEST_F(QueueSafety, WithoutAnInboxAWaiterPollsAndDoesNotJoin) {
  client holder = direct();
  client waiter = through_proxy();
  auto held = holder.mutex("orders").acquire();
  proxy.inject(fault::answer, "SUBSCRIBE", 1000, "-NOPERM no such luck\r\n");
  auto wait = wait_for(waiter);
  ASSERT_TRUE(proxy.await_request(asks, 4));
  EXPECT_EQ(waiting(), 0U);
  for (const auto& request : proxy.requests()) {
    if (request.find(asks) == std::string::npos) continue;
    EXPECT_THAT(request, Not(HasSubstr(std::string{stores::redis::inbox_prefix})));
  }
  EXPECT_TRUE(held.release());
  EXPECT_TRUE(wait.get());
}

// Whoever looks at all channels counts as somebody who hears: only the claim TTL helps then.
TEST_F(QueueSafety, ReceiverOfAGrantProvesNothing) {
  client holder = direct();
  client waiter = direct({.lock = {.ttl = ttl}});
  raw_redis onlooker{server.where()};
  ASSERT_FALSE(onlooker.command({"PSUBSCRIBE", "holdfast:*"}).is_error());
  auto held = holder.mutex("orders").acquire();
  add_dead_waiter(1, inbox_called('d'), claim);
  auto wait = wait_for(waiter);
  ASSERT_TRUE(eventually([&] { return waiting() == 2; }));
  EXPECT_TRUE(held.release());
  EXPECT_THAT(server.command({"GET", "orders"}), HasSubstr("host=dead"));
  EXPECT_LE(pttl("orders"), claim);
  EXPECT_TRUE(wait.get());
}

// Granted one after the other, each would cost the others a claim TTL.
TEST_F(QueueSafety, PausedProcessCostsOneClaimHoweverOftenItWaits) {
  constexpr int entries = 30;
  client holder = direct();
  client waiter = direct({.lock = {.ttl = ttl}});
  raw_redis paused{server.where()};  // its connection is open, and nobody reads there
  ASSERT_FALSE(paused.command({"SUBSCRIBE", inbox_called('5')}).is_error());
  auto held = holder.mutex("orders").acquire();
  for (int i = 1; i <= entries; ++i)
    add_dead_waiter(i, inbox_called('5'), claim);
  auto wait = wait_for(waiter);
  ASSERT_TRUE(eventually([&] { return waiting() == entries + 1; }));
  const auto released = runtime::now();
  EXPECT_TRUE(held.release());
  EXPECT_TRUE(wait.get());
  EXPECT_LT(runtime::now() - released, entries / 3 * claim);
}

TEST_F(QueueSafety, EntriesThatMakeNoSenseArePassedOver) {
  client holder = direct();
  client waiter = direct({.lock = {.ttl = 60s}});
  auto held = holder.mutex("orders").acquire();
  add_dead_waiter(1);
  const auto sound = server.command({"LPOP", keys.queue});
  const auto spoilt = [&](std::size_t at, const std::string& with) {
    auto entry = sound;
    return entry.replace(at, with.size(), with);
  };
  const std::vector<std::string> strange{
      "x",
      std::string(300, ';'),
      sound.substr(0, 32),     // an id and nothing else
      sound.substr(0, 45),     // ends after the block
      spoilt(33, "no claim"),  // none of these are numbers
      spoilt(42, "abc"),
      spoilt(42, "000"),  // no token at all
      spoilt(46, "??"),
  };
  for (const auto& one : strange)
    ASSERT_NE(server.command({"RPUSH", keys.queue, one}), "0");
  auto wait = wait_for(waiter);
  ASSERT_TRUE(eventually([&] { return waiting() == strange.size() + 1; }));
  // Each is met by a release in which its id is known, and was heard of.
  for (std::size_t i = 0; i < strange.size(); ++i)
    ASSERT_NE(server.command({"HSET", keys.waiters, strange[i].substr(0, 32), "9999999999999"}),
              "");
  EXPECT_TRUE(held.release());
  ASSERT_EQ(wait.wait_for(10s), std::future_status::ready) << "it was not told";
  EXPECT_TRUE(wait.get());
}

TEST_F(QueueSafety, SignOfLifeThatMakesNoSenseIsNone) {
  client holder = direct();
  auto held = holder.mutex("orders").acquire();
  add_dead_waiter(1);
  const std::string id = std::string(31, '0') + "1";
  ASSERT_EQ(server.command({"HSET", keys.waiters, id, "yesterday"}), "0");
  EXPECT_TRUE(held.release());
  EXPECT_TRUE(nothing_left());
}

// The release finds nobody holding the lock and many dead waiters: that is no release.
TEST_F(QueueSafety, ReleaseAfterALossSaysSoAlthoughItTakesMoreThanOneCall) {
  client holder = direct({.lock = {.renew = false}});
  auto held = holder.mutex("orders").acquire();
  for (int i = 1; i <= 600; ++i)
    add_dead_waiter(i);
  ASSERT_EQ(server.command({"DEL", "orders"}), "1");
  const auto said = held.release();
  ASSERT_FALSE(said) << "it was lost before";
  EXPECT_EQ(said.error().code, errc::lease_lost);
}

// --- scenario: a waiter is killed, messages are lost
// ---------------------------------------------------------------

TEST_F(QueueSafety, KilledWaiterAtTheHeadCostsTheNextNothing) {
  client holder = direct();
  client waiter = direct({.lock = {.ttl = 60s}});
  auto held = holder.mutex("orders").acquire();
  holder_process killed{server.url(), "orders", 60s, holder_process::environment{}};
  ASSERT_TRUE(eventually([&] { return waiting() == 1; }));
  const auto entry = server.command({"LINDEX", keys.queue, "0"});
  const std::string inbox{stores::redis::queue_entry::parse(entry)->inbox};
  auto wait = wait_for(waiter);
  ASSERT_TRUE(eventually([&] { return waiting() == 2; }));
  killed.child().signal(SIGKILL);
  ASSERT_TRUE(eventually([&] { return receivers(inbox) == "0"; }));
  const auto before = scripts_run();
  EXPECT_TRUE(held.release());
  ASSERT_EQ(wait.wait_for(10s), std::future_status::ready) << "a claim TTL is 15 s here";
  EXPECT_TRUE(wait.get());
  EXPECT_LE(scripts_run() - before, 2U);
}

// The subscription stands, and nothing ever comes through it.
TEST_F(QueueSafety, WaitersGetTheLockAlthoughEveryMessageIsLost) {
  client holder = direct();
  client waiter = through_proxy({.lock = {.ttl = ttl}});
  proxy.lose_messages(true);
  for (int i = 0; i < 3; ++i) {
    auto held = holder.mutex("orders").acquire();
    auto wait = wait_for(waiter);
    ASSERT_TRUE(eventually([&] { return waiting() == 1; }));
    const auto released = runtime::now();
    EXPECT_TRUE(held.release());
    auto got = wait.get();
    ASSERT_TRUE(got);
    EXPECT_LT(runtime::now() - released, ttl + claim + 5s) << "found out by asking";
    EXPECT_TRUE(got->held());
    EXPECT_TRUE(got->release()) << "answered once, granted once";
  }
  EXPECT_TRUE(nothing_left());
}

// Its holder is killed while messages are lost: the TTL, and then somebody asks.
TEST_F(QueueSafety, DeadHoldersLockIsFoundAlthoughEveryMessageIsLost) {
  client waiter = through_proxy({.lock = {.ttl = ttl}});
  proxy.lose_messages(true);
  holder_process holder{server.url(), "orders", ttl};
  auto wait = wait_for(waiter);
  ASSERT_TRUE(eventually([&] { return waiting() == 1; }));
  holder.child().signal(SIGKILL);
  const auto killed = runtime::now();
  auto got = wait.get();
  ASSERT_TRUE(got);
  EXPECT_LT(runtime::now() - killed, ttl + claim + 5s);
}

TEST_F(QueueSafety, InboxThatWasCutIsOpenedAgainAndGrantsCome) {
  client holder = direct();
  client waiter = direct({.lock = {.ttl = 60s}});  // asks every 3.75 s by itself
  auto held = holder.mutex("orders").acquire();
  auto wait = wait_for(waiter);
  ASSERT_TRUE(eventually([&] { return waiting() == 1; }));
  const auto entry = server.command({"LINDEX", keys.queue, "0"});
  const std::string inbox{stores::redis::queue_entry::parse(entry)->inbox};
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(server.command({"CLIENT", "KILL", "TYPE", "pubsub"}), "1");
    ASSERT_TRUE(eventually([&] { return receivers(inbox) == "1"; })) << "not opened again";
  }
  EXPECT_EQ(waiting(), 1U) << "it kept its place";
  EXPECT_TRUE(held.release());
  EXPECT_TRUE(wait.get());
}

// --- scenario: a wait is cancelled just when it is granted
// ---------------------------------------------------------------

TEST_F(QueueSafety, CancellationThatMeetsTheGrantLeavesNothing) {
  client holder = direct();
  client waiter = direct({.lock = {.ttl = 60s}});
  int granted = 0;
  for (int i = 0; i < 100; ++i) {
    auto held = holder.mutex("orders").acquire();
    std::stop_source stop;
    auto wait = std::async(std::launch::async, [&] {
      return waiter.mutex("orders").try_acquire(forever, stop.get_token()).has_value();
    });
    ASSERT_TRUE(eventually([&] { return waiting() == 1; }));
    std::thread canceller{[&] { stop.request_stop(); }};
    EXPECT_TRUE(held.release());
    canceller.join();
    granted += wait.get() ? 1 : 0;
    ASSERT_TRUE(eventually([&] { return nothing_left(); }, 5s)) << "after " << i << " rounds";
  }
  std::printf("granted %d times of 100\n", granted);
}

// --- scenario: late I/O of a thread that has handed the lock over
// ---------------------------------------------------------------

TEST_F(Queue, LateWriteAfterAHandOverInTheProcessIsRefused) {
  client c = direct();
  fence::gate gate;
  auto warm = c.mutex("orders").acquire();
  auto first = std::async(std::launch::async, [&] { return c.mutex("orders").acquire(); });
  ASSERT_TRUE(eventually([&] { return c.counters().waiting_now == 1; }));
  auto second = std::async(std::launch::async, [&] { return c.mutex("orders").acquire(); });
  ASSERT_TRUE(eventually([&] { return c.counters().waiting_now == 2; }));
  EXPECT_TRUE(warm.release());  // by the store: the next one reserves tokens for those behind it
  auto old = first.get();
  ASSERT_TRUE(gate.accept(old.token()));
  const auto before = scripts_run();
  EXPECT_TRUE(old.release());
  auto now = second.get();
  EXPECT_GT(now.token(), old.token());
  EXPECT_TRUE(gate.accept(now.token()));
  EXPECT_FALSE(gate.accept(old.token())) << "the old thread's late write";
  const bool in_the_process = scripts_run() == before;
  EXPECT_TRUE(in_the_process || now.token().value() > old.token().value() + 1);
}

}  // namespace holdfast::test
