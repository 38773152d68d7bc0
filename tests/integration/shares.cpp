// Locks that several may hold, when things go wrong.
#include <array>
#include <cstdio>
#include <future>
#include <thread>

#include <gmock/gmock.h>

#include "stores/redis/inbox.hpp"
#include "stores/redis/layout.hpp"
#include "support/proxied_redis.hpp"

using namespace std::chrono_literals;

namespace holdfast::test {

using testing::HasSubstr;

namespace {

class Shares : public proxied_redis {
 protected:
  [[nodiscard]] std::size_t waiting() const {
    return std::stoul(server.command({"LLEN", keys.queue}));
  }
  [[nodiscard]] bool nothing_left() const {
    return !exists("slots") && !exists(keys.queue) && !exists(keys.waiters);
  }
  [[nodiscard]] std::string used() const { return server.command({"HGET", "slots", "#used"}); }
  [[nodiscard]] std::future<std::optional<lease>> wait_for(client& c, std::uint32_t permits,
                                                           std::uint32_t of) const {
    return std::async(std::launch::async, [&c, permits, of] {
      return c.semaphore("slots", of).try_acquire(permits, patience);
    });
  }
  // As its process wrote it, before that was killed.
  void add_waiter(int number, const std::string& wants, const std::string& inbox,
                  std::uint64_t block = 0) const {
    std::array<char, 33> id{};
    std::snprintf(id.data(), id.size(), "%032x", static_cast<unsigned>(number));
    const auto seen = server.command({"TIME"});
    const auto ms = seen.substr(0, seen.find('\n')) + "999";
    const auto holder = wants + "host=dead;pid=1;label=";
    stores::redis::queue_entry entry;
    entry.id = *core::owner_id::parse(id.data());
    entry.claim = 60s;
    entry.block = block;
    entry.inbox = inbox;
    entry.holder = holder;
    static_cast<void>(server.command({"HSET", keys.waiters, id.data(), ms}));
    static_cast<void>(server.command({"RPUSH", keys.queue, entry.text()}));
  }
  [[nodiscard]] std::string release_by_hand(const std::string& id) const {
    return server.command({"EVALSHA", share_releases, "4", keys.lock, keys.slot, keys.queue,
                           keys.waiters, id, "", "", "permits", "2"});
  }

  const stores::redis::lock_keys keys{"slots"};
  const std::string nobodys = std::string{stores::redis::inbox_prefix} + std::string(32, 'd');
};

client_options impatient() {
  return {.lock = {.ttl = 60s}, .operation_timeout = 400ms, .release_budget = 5s};
}

}  // namespace

TEST_F(Shares, NothingIsLeftWhenAllIsGivenBack) {
  client a = direct();
  client b = direct();
  auto one = a.semaphore("slots", 1).acquire();
  auto waits = wait_for(b, 1, 1);
  ASSERT_TRUE(eventually([&] { return waiting() == 1; }));
  EXPECT_TRUE(one.release());
  auto other = waits.get();
  ASSERT_TRUE(other);
  EXPECT_TRUE(other->release());
  EXPECT_TRUE(nothing_left());
}

// When that has been over for as long again, at most.
TEST_F(Shares, TheKeyExpiresAfterItsLongestLease) {
  client c = direct({.lock = {.ttl = 60s}});
  const auto shorter = c.shared_mutex("slots", {.ttl = 20s}).acquire_shared();
  EXPECT_GE(pttl("slots"), 19s);
  EXPECT_LE(pttl("slots"), 40s);
  const auto longer = c.shared_mutex("slots").acquire_shared();
  EXPECT_GT(pttl("slots"), 50s);
  EXPECT_LE(pttl("slots"), 120s);
}

TEST_F(Shares, RetriedAcquireIsOneShare) {
  client c = through_proxy(impatient());
  proxy.inject(fault::swallow_reply, share_asks);
  auto held = c.semaphore("slots", 3).acquire(2);
  EXPECT_EQ(proxy.seen(share_asks), 2U);
  EXPECT_EQ(used(), "2");
  EXPECT_TRUE(held.release());
  EXPECT_TRUE(nothing_left());
}

TEST_F(Shares, UnansweredAcquireIsTakenBack) {
  client c = through_proxy(impatient());
  client other = direct();
  const auto stays = other.semaphore("slots", 3).acquire();
  proxy.inject(fault::swallow_reply, share_asks, 1000);
  const errc code = thrown_by([&] { (void)c.semaphore("slots", 3).acquire(2, 1s); });
  EXPECT_TRUE(code == errc::outcome_unknown || code == errc::store_unreachable);
  EXPECT_TRUE(eventually([&] { return used() == "1"; }));
  EXPECT_TRUE(stays.held());
}

TEST_F(Shares, RetriedReleaseTakesNothingFromOthers) {
  client c = through_proxy(impatient());
  // So that the client knows that the server knows this script: nobody waits for that release.
  { const auto warm = c.semaphore("warm", 1).acquire(); }
  EXPECT_TRUE(c.semaphore("warm", 1).acquire().release());
  client other = direct();
  const auto stays = other.semaphore("slots", 2).acquire();
  proxy.inject(fault::cut_before_reply, share_releases);
  { const auto gone = c.semaphore("slots", 2).acquire(); }
  ASSERT_TRUE(proxy.await_faults(1));
  auto again = c.semaphore("slots", 2).acquire(1, patience);
  (void)proxy.await_request(share_releases, 2, 2s);
  EXPECT_EQ(used(), "2");
  EXPECT_TRUE(again.renew());
  EXPECT_TRUE(again.release());
  EXPECT_EQ(used(), "1");
}

TEST_F(Shares, GrantWhoseMessageIsLostIsFoundByAsking) {
  client holder = direct();
  client waiter = through_proxy({.lock = {.ttl = 2s}});
  auto held = holder.semaphore("slots", 1).acquire();
  auto waits = wait_for(waiter, 1, 1);
  ASSERT_TRUE(eventually([&] { return waiting() == 1; }));
  proxy.lose_messages(true);
  EXPECT_TRUE(held.release());
  auto got = waits.get();
  ASSERT_TRUE(got);
  EXPECT_TRUE(got->renew());
  EXPECT_TRUE(got->release());
  EXPECT_TRUE(nothing_left());
}

// Somebody's attempt is gone, and its client still listens.
TEST_F(Shares, GrantThatNobodyWantsIsGivenBack) {
  client holder = direct();
  client waiter = direct();
  auto held = holder.semaphore("slots", 2).acquire(2);
  auto waits = wait_for(waiter, 2, 2);
  ASSERT_TRUE(eventually([&] { return waiting() == 1; }));
  const auto inbox = server.command({"LINDEX", keys.queue, "0"}).substr(49, 47);
  ASSERT_TRUE(inbox.starts_with(stores::redis::inbox_prefix)) << inbox;
  const auto real = server.command({"LPOP", keys.queue});
  add_waiter(7, "permits=1;", inbox);
  static_cast<void>(server.command({"RPUSH", keys.queue, real}));
  EXPECT_TRUE(held.release());
  auto got = waits.get();  // both of them, and the ghost has a claim of a minute
  ASSERT_TRUE(got);
  EXPECT_EQ(used(), "2");
}

TEST_F(Shares, DeadWaitersArePassedOver) {
  client holder = direct();
  client waiter = direct();
  auto held = holder.semaphore("slots", 2).acquire();
  add_waiter(1, "permits=2;", nobodys);
  add_waiter(2, "permits=0;", nobodys);
  add_waiter(3, "permits=1;", nobodys);
  add_waiter(4, "shared=1;", nobodys);    // of another kind
  add_waiter(5, "", nobodys, 1);          // a mutex's
  add_waiter(6, "permits=99;", nobodys);  // more than there are
  static_cast<void>(server.command({"RPUSH", keys.queue, "makes no sense"}));
  auto waits = wait_for(waiter, 2, 2);
  ASSERT_TRUE(eventually([&] { return waiting() >= 1; }));
  EXPECT_TRUE(held.release());
  auto got = waits.get();
  ASSERT_TRUE(got);
  EXPECT_EQ(used(), "2");
  EXPECT_TRUE(got->release());
  EXPECT_TRUE(nothing_left());
}

TEST_F(Shares, OneCallPassesOverABoundedNumberOfDeadWaiters) {
  constexpr std::size_t in_one_call = 500;
  client holder = direct();
  const auto held = holder.semaphore("slots", 2).acquire(2);
  for (int i = 1; i <= 1100; ++i)
    add_waiter(i, "permits=1;", nobodys);
  EXPECT_EQ(release_by_hand(std::string{held.owner()}), "2") << "free, and more to be done";
  EXPECT_EQ(waiting(), 1100 - in_one_call);
  EXPECT_TRUE(holder.semaphore("slots", 2).try_acquire()) << "whoever asks does the rest";
  EXPECT_FALSE(exists(keys.queue));
}

// A mutex's script must not take units for tokens, nor these scripts tokens for units.
TEST_F(Shares, QueueOfAnotherKindLetsNobodyIn) {
  client c = direct();
  add_waiter(1, "permits=1;", nobodys);
  EXPECT_TRUE(c.mutex("slots").acquire().release());
  EXPECT_TRUE(nothing_left());
}

TEST_F(Shares, DeletedKeyIsALossForAllAndServesWaiters) {
  client a = direct({.lock = {.ttl = 2s}});
  client b = direct({.lock = {.ttl = 2s}});
  const auto one = a.semaphore("slots", 2).acquire();
  const auto other = a.semaphore("slots", 2).acquire();
  auto waits = wait_for(b, 1, 2);
  ASSERT_TRUE(eventually([&] { return waiting() == 1; }));
  watched_token first{one.lost()};
  watched_token second{other.lost()};
  ASSERT_EQ(server.command({"DEL", "slots"}), "1");
  EXPECT_TRUE(first.wait());
  EXPECT_TRUE(second.wait());
  EXPECT_TRUE(waits.get());
}

// Short of memory a server refuses what sets, but leases must not end for that.
TEST_F(Shares, ShortOfMemoryLeasesAreRenewedAndHandedOver) {
  client holder = direct({.lock = {.ttl = 60s}});
  client waiter = direct({.lock = {.ttl = 60s}});
  auto one = holder.semaphore("slots", 2).acquire();
  auto other = holder.semaphore("slots", 2).acquire();
  auto waits = wait_for(waiter, 1, 2);
  ASSERT_TRUE(eventually([&] { return waiting() == 1; }));
  auto writer = holder.shared_mutex("config").acquire();
  ASSERT_EQ(server.command({"CONFIG", "SET", "maxmemory", "1"}), "OK");
  EXPECT_EQ(thrown_by([&] { (void)holder.semaphore("others", 2).try_acquire(); }),
            errc::out_of_memory);
  std::this_thread::sleep_for(5ms);  // so that there is something to extend
  EXPECT_TRUE(one.renew());
  EXPECT_TRUE(holder.shared_mutex("config").downgrade(writer));
  EXPECT_TRUE(writer.release());
  EXPECT_TRUE(other.release());
  auto got = waits.get();
  ASSERT_TRUE(got);
  EXPECT_TRUE(got->renew());
  EXPECT_TRUE(got->release());
  EXPECT_TRUE(one.release());
  EXPECT_TRUE(nothing_left());
}

TEST_F(Shares, ScriptsThatWereFlushedAreSentAgain) {
  client c = direct();
  const auto flush = [&] { ASSERT_EQ(server.command({"SCRIPT", "FLUSH"}), "OK"); };
  shared_mutex config = c.shared_mutex("config");
  flush();
  auto writer = config.acquire();
  flush();
  EXPECT_TRUE(config.downgrade(writer));
  flush();
  EXPECT_TRUE(writer.renew());
  flush();
  EXPECT_EQ(c.status("config").units_in_use, 1U);
  flush();
  EXPECT_TRUE(writer.release());
  flush();
  c.semaphore("slots", 1).resize(2);
  EXPECT_EQ(c.semaphore("slots", 1).capacity(), 2U);
}

TEST_F(Shares, KeyThatIsNoLockIsRefusedAndLeftAlone) {
  client c = direct();
  ASSERT_EQ(server.command({"HSET", "slots", "uuid:1", "1"}), "1");
  std::string what;
  EXPECT_EQ(thrown_by([&] { (void)c.semaphore("slots", 2).try_acquire(); }, &what),
            errc::wrong_type);
  EXPECT_THAT(what, HasSubstr("another one"));
  EXPECT_EQ(thrown_by([&] { c.semaphore("slots", 2).resize(3); }), errc::wrong_type);
  EXPECT_EQ(thrown_by([&] { (void)c.status("slots"); }), errc::wrong_type);
  EXPECT_TRUE(c.list("*").empty());
  EXPECT_EQ(server.command({"HGET", "slots", "uuid:1"}), "1");
}

TEST_F(Shares, LayoutThatIsTooNewIsRefused) {
  client c = direct();
  ASSERT_EQ(server.command({"HSET", keys.slot, "layout", "9"}), "1");
  EXPECT_EQ(thrown_by([&] { (void)c.semaphore("slots", 2).try_acquire(); }), errc::incompatible);
}

// Tokens come from the same counter as those of mutexes, and no higher than they have to.
TEST_F(Shares, TokensGoOnFromTheSlotsCounter) {
  client c = direct();
  constexpr std::uint64_t counter = 9'000'000'000'000'000;  // ahead of the clock
  ASSERT_EQ(server.command({"HSET", keys.slot, "layout", "1", "token", std::to_string(counter)}),
            "2");
  auto one = c.semaphore("slots", 2).acquire();
  auto other = c.semaphore("slots", 2).acquire();
  EXPECT_EQ(one.token().value(), counter + 1);
  EXPECT_EQ(other.token().value(), counter + 2);
  EXPECT_EQ(server.command({"HGET", keys.slot, "token"}), std::to_string(counter + 2));
}

// The dead are looked for when a unit is wanted, and units are counted right again.
TEST_F(Shares, DeadHoldersAreFoundWhenAUnitIsWanted) {
  client c = direct();
  const auto stays = c.semaphore("slots", 3, {.ttl = 60s}).acquire();
  auto held = c.semaphore("slots", 3, {.ttl = 100ms}).acquire(2);
  const auto gone = held.detach();
  ASSERT_TRUE(eventually([&] { return c.status("slots").units_in_use == 1; }));
  EXPECT_EQ(used(), "3") << "nobody wanted one";
  const auto next = c.semaphore("slots", 3).try_acquire(2);
  ASSERT_TRUE(next);
  EXPECT_EQ(used(), "3");
  EXPECT_EQ(server.command({"HEXISTS", "slots", gone.owner}), "0");
}

// Where access rules refuse messages, waiters look for themselves.
TEST_F(Shares, WithoutMessagesWaitersPoll) {
  client holder = direct();
  auto held = holder.semaphore("slots", 1).acquire();
  client waiter = direct({.lock = {.ttl = 2s}});
  auto waits = wait_for(waiter, 1, 1);
  ASSERT_TRUE(eventually([&] { return waiting() == 1; }));
  ASSERT_EQ(server.command({"ACL", "SETUSER", "default", "-publish"}), "OK");
  EXPECT_TRUE(held.release());
  EXPECT_TRUE(waits.get());
}

}  // namespace holdfast::test
