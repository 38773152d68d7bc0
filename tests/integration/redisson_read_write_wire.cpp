// What rread_write_lock puts on the wire, beside a Java program played by hand: the hash, the keys
// of holds, TTLs, messages. The real Redisson is met in tests/interop.
#include <future>
#include <latch>
#include <mutex>
#include <shared_mutex>

#include <gmock/gmock.h>

#include "support/proxied_redis.hpp"

using namespace std::chrono_literals;
using holdfast::redisson::rread_write_lock;

namespace holdfast::test {
namespace {

using testing::HasSubstr;
using testing::StartsWith;
using testing::UnorderedElementsAre;

const std::string channel = "redisson_rwlock:{config}";
const std::string java = "0f8fad5b-d9cb-469f-a165-70867728950e:47";

class RedissonReadWriteWire : public proxied_redis {
 protected:
  [[nodiscard]] std::vector<std::string> fields() const {
    return lines(server.command({"HKEYS", "config"}));
  }
  [[nodiscard]] std::string mode() const { return server.command({"HGET", "config", "mode"}); }
  [[nodiscard]] static std::string hold_of(const std::string& field) {
    return "{config}:" + field + ":rwlock_timeout:1";
  }
  [[nodiscard]] static std::vector<std::string> lines(const std::string& text) {
    std::istringstream from{text};
    std::vector<std::string> all;
    for (std::string one; std::getline(from, one);)
      all.push_back(one);
    return all;
  }
  void java_reads(const std::string& ttl = "30000") const {
    (void)server.command({"HSET", "config", "mode", "read"});
    ASSERT_EQ(server.command({"HINCRBY", "config", java, "1"}), "1");
    ASSERT_EQ(server.command({"SET", hold_of(java), "1", "PX", ttl}), "OK");
    ASSERT_EQ(server.command({"PEXPIRE", "config", ttl}), "1");
  }
  void java_writes(const std::string& ttl = "30000") const {
    (void)server.command({"HSET", "config", "mode", "write"});
    ASSERT_EQ(server.command({"HINCRBY", "config", java + ":write", "1"}), "1");
    ASSERT_EQ(server.command({"PEXPIRE", "config", ttl}), "1");
  }
  [[nodiscard]] bool someone_listens() const {
    return server.command({"PUBSUB", "NUMSUB", channel}) == channel + "\n1";
  }
};

// Reads one channel, as Redisson does.
class listener {
 public:
  listener(const redis_server& at, const std::string& to) : link_{at.where(), 5s} {
    (void)link_.command({"SUBSCRIBE", to});
  }
  [[nodiscard]] std::string next() { return link_.receive().shown(); }

 private:
  raw_redis link_;
};

// ---- layout ------------------------------------------------------------------------------------

TEST_F(RedissonReadWriteWire, ReaderHasAFieldAndAKeyForItsHold) {
  client c = direct();
  rread_write_lock config{c, "config", {.label = "night shift"}};
  lease held = config.read_lock().acquire();
  const std::string owner{held.owner()};
  EXPECT_EQ(mode(), "read");
  EXPECT_THAT(fields(), UnorderedElementsAre("mode", owner));
  EXPECT_EQ(server.command({"HGET", "config", owner}), "1");
  EXPECT_THAT(server.command({"GET", hold_of(owner)}), StartsWith(owner + ";holdfast=1;"));
  EXPECT_THAT(server.command({"GET", hold_of(owner)}), HasSubstr("night"));
  EXPECT_GT(pttl("config"), 25s);
  EXPECT_GT(pttl(hold_of(owner)), 25s);
  EXPECT_EQ(held.token(), fencing_token{});
  ASSERT_TRUE(held.release());
  EXPECT_TRUE(eventually([&] {
    return server.command({"KEYS", "*"}).empty();
  })) << server.command({"KEYS", "*"});
}

TEST_F(RedissonReadWriteWire, WriterHasAFieldOfItsOwnKind) {
  client c = direct();
  rread_write_lock config{c, "config"};
  lease held = config.write_lock().acquire();
  EXPECT_EQ(mode(), "write");
  EXPECT_THAT(fields(), UnorderedElementsAre("mode", std::string{held.owner()} + ":write"));
  EXPECT_GT(pttl("config"), 25s);
  ASSERT_TRUE(held.release());
  EXPECT_TRUE(eventually([&] {
    return server.command({"KEYS", "*"}).empty();
  })) << server.command({"KEYS", "*"});
}

TEST_F(RedissonReadWriteWire, LastReadersReleasePublishesZeroAndAWritersOne) {
  client c = direct();
  rread_write_lock config{c, "config"};
  listener java_waits{server, channel};
  {
    lease one = config.read_lock().acquire();
    lease other = config.read_lock().acquire();
    ASSERT_TRUE(one.release());
    ASSERT_TRUE(other.release());
  }
  EXPECT_EQ(java_waits.next(), "message\n" + channel + "\n0");
  ASSERT_TRUE(config.write_lock().acquire().release());
  EXPECT_EQ(java_waits.next(), "message\n" + channel + "\n1")
      << "and the first reader's told nobody";
}

TEST_F(RedissonReadWriteWire, NameWithABraceIsNotPutIntoBraces) {
  client c = direct();
  rread_write_lock config{c, "{shop}:config"};
  const lease held = config.read_lock().acquire();
  EXPECT_TRUE(exists("{shop}:config:" + std::string{held.owner()} + ":rwlock_timeout:1"));
}

// ---- who excludes whom -------------------------------------------------------------------------

TEST_F(RedissonReadWriteWire, JavasReaderLetsReadersInAndKeepsWritersOut) {
  client c = direct();
  rread_write_lock config{c, "config"};
  java_reads();
  EXPECT_FALSE(config.write_lock().try_acquire());
  lease held = config.read_lock().acquire();
  const auto said = config.write_lock().acquire_result(50ms);
  ASSERT_FALSE(said);
  EXPECT_EQ(said.error().code, errc::timed_out);
  EXPECT_TRUE(said.error().holder);
  EXPECT_EQ(server.command({"HGET", "config", java}), "1") << "untouched";
}

TEST_F(RedissonReadWriteWire, JavasWriterKeepsBothOutAndIsShownByItsField) {
  client c = direct();
  rread_write_lock config{c, "config"};
  java_writes();
  EXPECT_FALSE(config.read_lock().try_acquire());
  const auto said = config.write_lock().acquire_result(50ms);
  ASSERT_FALSE(said);
  ASSERT_TRUE(said.error().holder);
  EXPECT_EQ(said.error().holder->value, java + ":write");
}

TEST_F(RedissonReadWriteWire, StatusShowsReadersOfBothSides) {
  client c = direct();
  rread_write_lock config{c, "config", {.label = "night shift"}};
  EXPECT_FALSE(config.status().holder);
  java_reads();
  lease held = config.read_lock().acquire();
  auto status = config.status();
  EXPECT_EQ(status.kind, lock_status::form::shared_mutex);
  EXPECT_EQ(status.holding, 2U);
  EXPECT_EQ(status.units_in_use, 2U);
  std::vector<std::string> who;
  for (const auto& one : status.holders)
    who.push_back(one.foreign ? one.value : one.label);
  EXPECT_THAT(who, UnorderedElementsAre(java, "night shift"));
  ASSERT_TRUE(held.release());
  ASSERT_TRUE(config.force_unlock());
  const lease writing = config.write_lock().acquire();
  status = config.status();
  ASSERT_EQ(status.holders.size(), 1U);
  EXPECT_EQ(status.holders[0].units, status.capacity);
  EXPECT_EQ(status.holders[0].label, "night shift");
}

TEST_F(RedissonReadWriteWire, AnotherKindOfLockIsRefusedAndLeftAlone) {
  client c = direct();
  rread_write_lock config{c, "config"};
  {
    holdfast::redisson::rlock plain{c, "config"};
    const lease held = plain.acquire();
    EXPECT_EQ(thrown_by([&] { (void)config.read_lock().try_acquire(); }), errc::wrong_type);
    EXPECT_EQ(thrown_by([&] { (void)config.write_lock().try_acquire(); }), errc::wrong_type);
    EXPECT_EQ(server.command({"HLEN", "config"}), "1");
  }
  ASSERT_TRUE(eventually([&] { return !exists("config"); }));
  const lease native = c.shared_mutex("config").acquire();
  EXPECT_EQ(thrown_by([&] { (void)config.read_lock().try_acquire(); }), errc::wrong_type);
  EXPECT_EQ(thrown_by([&] { (void)config.status(); }), errc::wrong_type);
  EXPECT_EQ(thrown_by([&] { (void)config.force_unlock(); }), errc::wrong_type);
}

TEST_F(RedissonReadWriteWire, StoresWithoutAHashRefuseItWithTheReason) {
  client c{"memory:"};
  std::string what;
  EXPECT_EQ(thrown_by([&] { rread_write_lock{c, "config"}; }, &what), errc::unsupported);
  EXPECT_THAT(what, HasSubstr("on a Redis server"));
}

// ---- how long ----------------------------------------------------------------------------------

TEST_F(RedissonReadWriteWire, TtlIsThatOfTheLongestHoldThatIsLeft) {
  client c = direct();
  java_reads("10000");
  rread_write_lock longer{c, "config", {.ttl = 60s}};
  rread_write_lock shorter{c, "config", {.ttl = 3s, .renew = false}};
  const lease brief = shorter.read_lock().acquire();
  EXPECT_GT(pttl("config"), 5s) << "never shortened";
  lease held = longer.read_lock().acquire();
  EXPECT_GT(pttl("config"), 50s);
  ASSERT_TRUE(held.release());
  EXPECT_LE(pttl("config"), 10s) << "Java's";
  EXPECT_GT(pttl("config"), 4s);
}

// As Redisson's own: the reader that leaves finds that no hold lasts.
TEST_F(RedissonReadWriteWire, DeadReadersDoNotKeepTheLock) {
  client c = direct();
  rread_write_lock config{c, "config"};
  java_reads();
  ASSERT_EQ(server.command({"DEL", hold_of(java)}), "1") << "as its TTL does";
  listener java_waits{server, channel};
  lease held = config.read_lock().acquire();
  ASSERT_TRUE(held.release());
  EXPECT_FALSE(exists("config"));
  EXPECT_EQ(java_waits.next(), "message\n" + channel + "\n0");
}

TEST_F(RedissonReadWriteWire, DeadReaderOfOursIsTakenAwayByTheNextRelease) {
  client c = direct();
  rread_write_lock config{c, "config"};
  lease dead = config.read_lock().acquire();
  ASSERT_EQ(server.command({"DEL", hold_of(std::string{dead.owner()})}), "1");
  java_reads();
  lease held = config.read_lock().acquire();
  ASSERT_TRUE(held.release());
  EXPECT_THAT(fields(), UnorderedElementsAre("mode", java));
}

// Ours must have a key that Java's unlock can look for, or it would take the lock from them.
TEST_F(RedissonReadWriteWire, HoldThatEndedIsNotBroughtBackByRenewal) {
  client c = direct({.lock = {.ttl = 3s}});
  rread_write_lock config{c, "config"};
  java_reads();
  lease held = config.read_lock().acquire();
  watched_token lost{held.lost()};
  ASSERT_EQ(server.command({"DEL", hold_of(std::string{held.owner()})}), "1");
  ASSERT_TRUE(lost.wait());
  EXPECT_EQ(held.why_lost(), loss::deleted);
  EXPECT_FALSE(held.release());
}

// ---- waiting -----------------------------------------------------------------------------------

TEST_F(RedissonReadWriteWire, WritersMessageWakesAllReaders) {
  client c = direct();
  rread_write_lock config{c, "config"};
  java_writes("60000");
  std::latch inside{4};
  std::vector<std::future<bool>> all;
  for (int i = 0; i < 4; ++i) {
    all.push_back(std::async(std::launch::async, [&] {
      const lease held = config.read_lock().acquire(30s);
      inside.count_down();
      return eventually([&] { return inside.try_wait(); });  // together
    }));
  }
  ASSERT_TRUE(eventually([&] { return c.counters().waiting_now == 4 && someone_listens(); }));
  let_pass(100ms);
  const auto released = runtime::now();
  ASSERT_EQ(server.command({"DEL", "config"}), "1");
  (void)server.command({"PUBLISH", channel, "1"});
  for (auto& one : all)
    EXPECT_TRUE(one.get());
  EXPECT_LT(runtime::now() - released, 4s) << "before a waiter would ask by itself";
}

TEST_F(RedissonReadWriteWire, LastReadersMessageWakesAWriter) {
  client c = direct();
  rread_write_lock config{c, "config"};
  java_reads("60000");
  auto waits = std::async(std::launch::async, [&] {
    const lease held = config.write_lock().acquire(30s);
    return runtime::now();
  });
  ASSERT_TRUE(eventually([&] { return someone_listens(); }));
  let_pass(100ms);
  const auto released = runtime::now();
  ASSERT_EQ(server.command({"DEL", "config"}), "1");
  (void)server.command({"PUBLISH", channel, "0"});
  EXPECT_LT(waits.get() - released, 1s);
}

TEST_F(RedissonReadWriteWire, ForceUnlockTellsWaiters) {
  client c = direct();
  rread_write_lock config{c, "config"};
  EXPECT_FALSE(config.force_unlock());
  listener java_waits{server, channel};
  java_reads();
  EXPECT_TRUE(config.force_unlock());
  EXPECT_EQ(java_waits.next(), "message\n" + channel + "\n0");
  java_writes();
  EXPECT_TRUE(config.force_unlock());
  EXPECT_EQ(java_waits.next(), "message\n" + channel + "\n1");
  EXPECT_FALSE(exists("config"));
}

// ---- the way down ------------------------------------------------------------------------------

TEST_F(RedissonReadWriteWire, DowngradeIsOneStepAndTellsReaders) {
  client c = direct();
  rread_write_lock config{c, "config"};
  lease held = config.write_lock().acquire();
  listener java_waits{server, channel};
  ASSERT_TRUE(config.downgrade(held));
  EXPECT_EQ(mode(), "read");
  EXPECT_THAT(fields(), UnorderedElementsAre("mode", std::string{held.owner()}));
  EXPECT_GT(pttl(hold_of(std::string{held.owner()})), 25s);
  EXPECT_EQ(java_waits.next(), "message\n" + channel + "\n1");
  ASSERT_TRUE(config.downgrade(held)) << "may be repeated";
  EXPECT_TRUE(config.read_lock().try_acquire());
  EXPECT_TRUE(held.renew());
  ASSERT_TRUE(held.release());
  EXPECT_TRUE(eventually([&] { return !exists("config"); }));
}

TEST_F(RedissonReadWriteWire, ReaderMustBeOfThisLockToBeMadeOne) {
  client c = direct();
  rread_write_lock config{c, "config"};
  rread_write_lock other{c, "other"};
  lease held = other.write_lock().acquire();
  const auto said = config.downgrade(held);
  ASSERT_FALSE(said);
  EXPECT_EQ(said.error().code, errc::invalid_argument);
}

}  // namespace
}  // namespace holdfast::test
