// The stored layout: what is in Redis now, what the version before and after wrote, and one that
// is too new. The texts here are fixtures: they must go on working as they are.
#include "stores/redis/layout.hpp"

#include <gmock/gmock.h>

#include "support/proxied_redis.hpp"

using namespace std::chrono_literals;

namespace holdfast::test {

class StoredLayout : public proxied_redis {
 protected:
  // As layout 1 writes it, marked as layout `n`.
  static std::string value_of_layout(const std::string& n) {
    return "00112233445566778899aabbccddeeff;holdfast=" + n +
           ";token=1700000000000001;since=1700000000000;host=old%3bhost;pid=42;label=a b%0a";
  }
  // The record of the hash slot of the lock "orders": CRC16("orders") % 16384 = 105.
  const std::string slot_record = stores::redis::lock_keys{"orders"}.slot;
};

TEST_F(StoredLayout, IsWhatIsDocumented) {
  client c = direct({.lock = {.ttl = 60s, .label = "a;b=c\n%"}});
  const lease held = c.mutex("orders").acquire();
  const std::string value = server.command({"GET", "orders"});
  EXPECT_THAT(value, testing::MatchesRegex("[0-9a-f]{32};holdfast=1;token=[0-9]{16};"
                                           "block=1;since=[0-9]{13};host=[^;]*;pid=[0-9]+;"
                                           "label=a%3bb%3dc%0a%25"));
  EXPECT_TRUE(value.starts_with(held.owner()));
  EXPECT_EQ(server.command({"HGET", slot_record, "layout"}), "1");
  EXPECT_EQ(server.command({"HGET", slot_record, "token"}), to_string(held.token()));
  EXPECT_EQ(server.command({"TTL", slot_record}), "-1");
  EXPECT_EQ(server.command({"DBSIZE"}), "2");
}

// The tag is part of the layout: another one would be another counter, and tokens would repeat.
TEST_F(StoredLayout, SlotRecordsStayWhereTheyAre) {
  EXPECT_EQ(stores::redis::hash_slot("orders"), 105U);
  EXPECT_EQ(stores::redis::hash_slot("123456789"), 12739U) << "CRC16 of the cluster specification";
  EXPECT_EQ(stores::redis::hash_slot(slot_record), stores::redis::hash_slot("orders"));
  EXPECT_EQ(slot_record, "holdfast:{6lO}:slot");
}

TEST_F(StoredLayout, LockOfThisOrTheNextLayoutIsALockLikeOurs) {
  client c = direct();
  for (const char* layout : {"1", "2"}) {
    ASSERT_EQ(server.command({"SET", "orders", value_of_layout(layout), "PX", "60000"}), "OK");
    EXPECT_FALSE(c.mutex("orders").try_acquire()) << layout;
    const lock_status status = c.status("orders");
    ASSERT_TRUE(status.holder) << layout;
    EXPECT_FALSE(status.holder->foreign);
    EXPECT_EQ(status.holder->host, "old;host");
    EXPECT_EQ(status.holder->pid, 42);
    EXPECT_EQ(status.holder->label, "a b\n");
    EXPECT_EQ(status.holder->token, fencing_token{1700000000000001});
    EXPECT_NO_THROW(c.break_lock("orders", status.holder->token));
    EXPECT_FALSE(exists("orders"));
  }
}

TEST_F(StoredLayout, LockOfALayoutTooNewIsAClearError) {
  client c = direct();
  ASSERT_EQ(server.command({"SET", "orders", value_of_layout("3"), "PX", "60000"}), "OK");
  std::string what;
  EXPECT_EQ(thrown_by([&] { (void)c.mutex("orders").try_acquire(); }, &what), errc::incompatible);
  EXPECT_NE(what.find("newer"), std::string::npos) << what;
  EXPECT_EQ(server.command({"GET", "orders"}), value_of_layout("3")) << "left alone";
}

TEST_F(StoredLayout, RecordOfTheNextLayoutIsSharedAndKept) {
  (void)server.command({"HSET", slot_record, "layout", "2", "token", "1"});
  client c = direct();
  const lease held = c.mutex("orders").acquire();
  EXPECT_EQ(server.command({"HGET", slot_record, "layout"}), "2") << "never lowered";
  EXPECT_EQ(server.command({"HGET", slot_record, "token"}), to_string(held.token()));
}

TEST_F(StoredLayout, RecordOfALayoutTooNewIsAClearErrorAndIsLeftAlone) {
  (void)server.command({"HSET", slot_record, "layout", "3", "token", "7"});
  client c = direct();
  std::string what;
  EXPECT_EQ(thrown_by([&] { (void)c.mutex("orders").acquire(); }, &what), errc::incompatible);
  EXPECT_NE(what.find("newer"), std::string::npos) << what;
  EXPECT_EQ(make_error_code(errc::incompatible), condition::give_up);
  EXPECT_EQ(server.command({"HGET", slot_record, "token"}), "7");
  EXPECT_FALSE(exists("orders"));
}

TEST_F(StoredLayout, TokensGoOnFromACounterAheadOfTheClock) {
  constexpr std::uint64_t ahead = 4'000'000'000'000'000;  // the year 2096
  (void)server.command({"HSET", slot_record, "layout", "1", "token", std::to_string(ahead)});
  client c = direct();
  EXPECT_EQ(c.mutex("orders").acquire().token(), fencing_token{ahead + 1});
  EXPECT_EQ(c.mutex("orders").acquire().token(), fencing_token{ahead + 2});
}

TEST_F(StoredLayout, OwnKeysCannotBeLocked) {
  client c = direct();
  EXPECT_EQ(thrown_by([&] { (void)c.mutex(slot_record).try_acquire(); }), errc::invalid_argument);
}

}  // namespace holdfast::test
