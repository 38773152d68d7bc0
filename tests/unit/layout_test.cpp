// What is stored in Redis: slots, keys, and the holder written into a lock's value.
#include "stores/redis/layout.hpp"

#include <cctype>
#include <set>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

using namespace std::string_literals;

namespace holdfast::test {

namespace {

using namespace stores::redis;

constexpr unsigned slot_count = 16384;

// CRC16 (XMODEM) bit by bit, as its definition has it.
unsigned slow_crc(std::string_view bytes) {
  unsigned crc = 0;
  for (const char c : bytes) {
    crc ^= static_cast<unsigned>(static_cast<unsigned char>(c)) << 8;
    for (int bit = 0; bit < 8; ++bit) {
      crc = ((crc << 1) ^ ((crc & 0x8000) != 0 ? 0x1021 : 0)) & 0xffff;
    }
  }
  return crc;
}

const std::string owner = "0123456789abcdef0123456789abcdef";

std::string stored(const std::string& rest, const std::string& version = "1") {
  return owner + ";holdfast=" + version + ";" + rest;
}

rc::Gen<std::string> any_bytes() {
  return rc::gen::container<std::string>(
      rc::gen::oneOf(rc::gen::arbitrary<char>(), rc::gen::element(';', '%', '=', ' ', '\0', '4')));
}

}  // namespace

TEST(HashSlot, IsThatOfTheClusterSpecification) {
  EXPECT_EQ(slow_crc("123456789"), 0x31c3U);
  EXPECT_EQ(hash_slot("123456789"), 0x31c3U);
  EXPECT_EQ(hash_slot("foo"), 12182U);
  EXPECT_EQ(hash_slot("bar"), 5061U);
  EXPECT_EQ(hash_slot(""), 0U);
}

TEST(HashSlot, NonEmptyTagAloneDecides) {
  EXPECT_EQ(hash_slot("{user1000}.following"), hash_slot("{user1000}.followers"));
  EXPECT_EQ(hash_slot("{user1000}.following"), hash_slot("user1000"));
  EXPECT_EQ(hash_slot("foo{bar}{zap}"), hash_slot("bar")) << "the first tag";
  EXPECT_EQ(hash_slot("foo{{bar}}zap"), hash_slot("{bar")) << "up to the first }";
  EXPECT_EQ(hash_slot("a}b{c}"), hash_slot("c"));
}

TEST(HashSlot, EmptyOrUnclosedTagIsNoTag) {
  for (const auto key : {"foo{}{bar}", "foo{", "foo}bar{", "{}", "foo{bar"}) {
    EXPECT_EQ(hash_slot(key), slow_crc(key) % slot_count) << key;
  }
}

RC_GTEST_PROP(HashSlot, OfAnyBytesWithoutATagIsTheirCrc, (std::string key)) {
  std::erase(key, '{');
  RC_ASSERT(hash_slot(key) == slow_crc(key) % slot_count);
}

TEST(SlotTag, EverySlotHasThreeLettersThatHashToIt) {
  for (unsigned slot = 0; slot < slot_count; ++slot) {
    const auto tag = slot_tag(slot);
    ASSERT_EQ(tag.size(), 3U) << slot;
    for (const char c : tag) {
      ASSERT_TRUE(std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_') << tag;
    }
    ASSERT_EQ(slow_crc(tag) % slot_count, slot) << tag;
  }
}

// Stored on servers: another choice would lose every counter.
TEST(SlotTag, IsTheSameForEver) {
  EXPECT_EQ(slot_tag(0), "06S");
  EXPECT_EQ(slot_tag(12182), "9Le");
  EXPECT_EQ(slot_tag(16383), "6ZJ");
}

RC_GTEST_PROP(OurKeys, LiveInTheSlotOfTheLockWhateverItsName, ()) {
  const auto key = *rc::gen::container<std::string>(
      rc::gen::oneOf(rc::gen::arbitrary<char>(), rc::gen::element('{', '}', 'a')));
  const lock_keys keys{key};
  for (const auto& ours : {keys.slot, keys.queue, keys.waiters}) {
    RC_ASSERT(hash_slot(ours) == hash_slot(key));
    RC_ASSERT(ours.starts_with(reserved_prefix));
  }
  RC_ASSERT(keys.slot.ends_with("}:slot"));
}

TEST(Holder, IsReadableInTheStore) {
  EXPECT_EQ(describe_holder("web-1", 4711, "night batch"), "host=web-1;pid=4711;label=night batch");
  EXPECT_EQ(describe_holder("", 1, "a;b=c%d\n\xff"), "host=;pid=1;label=a%3bb%3dc%25d%0a%ff");
}

RC_GTEST_PROP(Holder, AnyHostAndLabelComeBackAsTheyWere, (std::int64_t pid)) {
  const auto host = *any_bytes();
  const auto label = *any_bytes();
  const auto token = *rc::gen::inRange<std::uint64_t>(1, std::uint64_t{1} << 53);
  const auto since = *rc::gen::inRange<std::int64_t>(0, 4'000'000'000'000);
  const auto value = stored("token=" + std::to_string(token) + ";since=" + std::to_string(since) +
                            ";" + describe_holder(host, pid, label));
  const auto who = parse_holder(value);
  RC_ASSERT(who.has_value());
  RC_ASSERT(!who->foreign);
  RC_ASSERT(who->host == host);
  RC_ASSERT(who->label == label);
  RC_ASSERT(who->pid == pid);
  RC_ASSERT(who->token == fencing_token{token});
  RC_ASSERT(who->since.time_since_epoch() == std::chrono::milliseconds{since});
  RC_ASSERT(who->value.empty());
}

RC_GTEST_PROP(Holder, DescriptionNeverBreaksTheFormat, ()) {
  const auto text = describe_holder(*any_bytes(), 1, *any_bytes());
  RC_ASSERT(std::count(text.begin(), text.end(), ';') == 2);
  RC_ASSERT(std::count(text.begin(), text.end(), '=') == 3);
  for (const char c : text)
    RC_ASSERT(c >= ' ' && c < 0x7f);
}

TEST(Holder, ValuesOfOtherClientsAreForeign) {
  for (const std::string& value :
       {""s, "1"s, owner, owner + ";"s, owner + ";holdfast"s, owner + ":holdfast=1;token=5"s,
        "mZ4v8yQx0Yk3bq1F7uWc9A=="s, "550e8400-e29b-41d4-a716-446655440000"s,
        "0123456789ABCDEF0123456789ABCDEF;holdfast=1;token=5"s, "\0\xff"s}) {
    const auto who = parse_holder(value);
    ASSERT_TRUE(who) << value;
    EXPECT_TRUE(who->foreign) << value;
    EXPECT_EQ(who->value, value);
    EXPECT_EQ(who->token, fencing_token{});
  }
}

TEST(Holder, ForeignValueIsCut) {
  const auto who = parse_holder(std::string(1000, 'x'));
  ASSERT_TRUE(who);
  EXPECT_EQ(who->value, std::string(256, 'x'));
}

TEST(Holder, NextLayoutIsReadAndOneTooNewIsRefused) {
  const auto next = parse_holder(stored("token=5;more=1;host=h;pid=2;label=l", "2"));
  ASSERT_TRUE(next);
  EXPECT_EQ(next->token, fencing_token{5});
  EXPECT_EQ(next->host, "h");
  for (const auto version : {"3", "10", "2147483647", "99999999999"}) {
    const auto newer = parse_holder(stored("token=5", version));
    ASSERT_FALSE(newer) << version;
    EXPECT_EQ(newer.error().code, errc::incompatible);
    EXPECT_THAT(newer.error().message, testing::HasSubstr("newer"));
  }
}

TEST(Holder, GarbledFieldsOfOursAreEmptyNotGuessed) {
  const auto who = parse_holder(stored("token=x;since=;pid=99999999999999999999;host=%zz%4;junk"));
  ASSERT_TRUE(who);
  EXPECT_FALSE(who->foreign);
  EXPECT_EQ(who->token, fencing_token{});
  EXPECT_EQ(who->pid, 0);
  EXPECT_EQ(who->host, "%zz%4");
  EXPECT_EQ(who->label, "");
}

// Anybody may write the key: such a number must not overflow on its way to nanoseconds.
TEST(Holder, SinceBeyondTheClockIsNotWrapped) {
  const auto who = parse_holder(stored("token=5;since=9223372036854775807"));
  ASSERT_TRUE(who);
  EXPECT_GE(who->since.time_since_epoch().count(), 0);
}

RC_GTEST_PROP(Holder, AnyBytesAreParsedWithoutHarm, ()) {
  const auto tail = *any_bytes();
  RC_ASSERT(parse_holder(tail)->foreign);
  const auto ours = parse_holder(stored("label=" + tail));
  RC_ASSERT(ours.has_value() || ours.error().code == errc::incompatible);
}

TEST(Layout, EntryForUnitsIsAnEntryThatSaysSo) {
  const core::lock_kind slots{core::lock_kind::form::permits, 4};
  const auto holder = stores::redis::units_wanted(slots, 3) + "host=h;pid=7;label=l";
  stores::redis::queue_entry entry;
  entry.id = core::owner_id::from_bits(1, 2);
  entry.block = 0;
  const std::string inbox = std::string{stores::redis::inbox_prefix} + std::string(32, 'a');
  entry.inbox = inbox;
  entry.holder = holder;
  const auto text = entry.text();
  const auto read = stores::redis::queue_entry::parse(text);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->block, 0U);
  EXPECT_TRUE(read->holder.starts_with("permits=3;"));
  const auto who = stores::redis::describe_waiter(read->holder, {});
  EXPECT_EQ(who.host, "h");
  EXPECT_EQ(who.pid, 7);
}

}  // namespace holdfast::test
