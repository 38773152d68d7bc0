// What is sent to an inbox, and what stands in a queue.
#include <gmock/gmock.h>
#include <rapidcheck/gtest.h>

#include "stores/redis/inbox.hpp"
#include "stores/redis/layout.hpp"

using namespace std::chrono_literals;

namespace holdfast::test {

namespace {

using stores::redis::parse_grant;
using stores::redis::queue_entry;

const std::string id = "0123456789abcdef0123456789abcdef";
const std::string inbox = std::string{stores::redis::inbox_prefix} + std::string(32, 'a');

queue_entry sound() {
  return {*core::owner_id::parse(id), 7500ms, 64, inbox, 1'700'000'000'123ms,
          "host=h;pid=1;label=a b"};
}

}  // namespace

TEST(GrantMessage, IsReadAsTheScriptWritesIt) {
  const auto grant = parse_grant(id + ";1794747416276443;7500;64;orders");
  ASSERT_TRUE(grant);
  EXPECT_EQ(grant->id.text(), id);
  EXPECT_EQ(grant->token, fencing_token{1794747416276443});
  EXPECT_EQ(grant->claim, 7500ms);
  EXPECT_EQ(grant->block, 64U);
  EXPECT_EQ(grant->key, "orders");
}

TEST(GrantMessage, KeyMayBeAnyBytes) {
  using namespace std::string_literals;
  const auto key = "a;b\0;;\xff"s;
  const auto grant = parse_grant(id + ";1;2;3;" + key);
  ASSERT_TRUE(grant);
  EXPECT_EQ(grant->key, key);
}

TEST(GrantMessage, WithoutAnIdItIsNone) {
  EXPECT_FALSE(parse_grant(""));
  EXPECT_FALSE(parse_grant(";1;2;3;orders"));
  EXPECT_FALSE(parse_grant(id.substr(1) + ";1;2;3;orders"));
  EXPECT_FALSE(parse_grant(id + "0;1;2;3;orders"));
  EXPECT_FALSE(parse_grant("hello"));
}

// Anybody may publish there: it is never a token above the counter, so it is ignored.
TEST(GrantMessage, NumbersThatAreNoneAreZero) {
  const auto grant = parse_grant(id + ";token;claim;block");
  ASSERT_TRUE(grant);
  EXPECT_EQ(grant->token, fencing_token{0});
  EXPECT_EQ(grant->claim, 0ms);
  EXPECT_EQ(grant->block, 0U);
  EXPECT_EQ(grant->key, "");
  EXPECT_EQ(parse_grant(id)->token, fencing_token{0});
}

RC_GTEST_PROP(GrantMessage, AnyBytesAreReadWithoutHarm, (std::string bytes)) {
  static_cast<void>(parse_grant(bytes));
  static_cast<void>(parse_grant(id + ";" + bytes));
}

// The positions are those that parts/hand_over.lua reads, which counts from one.
TEST(QueueEntry, FieldsStandWhereTheScriptReadsThem) {
  const auto text = sound().text();
  EXPECT_EQ(text.substr(0, 32), id);
  EXPECT_EQ(text.substr(34 - 1, 8), "00007500");
  EXPECT_EQ(text.substr(43 - 1, 3), "064");
  EXPECT_EQ(text.substr(47 - 1, 2), "01");
  EXPECT_EQ(text.substr(50 - 1, 47), inbox);
  EXPECT_EQ(text.substr(112 - 1), "host=h;pid=1;label=a b");
}

TEST(QueueEntry, TextThatIsTooShortOrHasNoIdIsNone) {
  const auto text = sound().text();
  EXPECT_FALSE(queue_entry::parse(""));
  EXPECT_FALSE(queue_entry::parse(id));
  EXPECT_FALSE(queue_entry::parse(text.substr(0, 110)));
  EXPECT_TRUE(queue_entry::parse(text.substr(0, 111)));
  EXPECT_FALSE(queue_entry::parse("X" + text.substr(1)));
}

RC_GTEST_PROP(QueueEntry, IsReadBackAsItWasWritten, ()) {
  auto entry = sound();
  // The longest TTL, and the most hands: nothing may outgrow its field.
  entry.claim = std::chrono::milliseconds{*rc::gen::inRange(0, 86'400'001)};
  entry.block = *rc::gen::inRange<std::uint64_t>(1, 65);
  const auto holder = *rc::gen::arbitrary<std::string>();
  entry.holder = holder;
  const auto text = entry.text();
  const auto read = queue_entry::parse(text);
  RC_ASSERT(read.has_value());
  RC_ASSERT(read->id == entry.id);
  RC_ASSERT(read->claim == entry.claim);
  RC_ASSERT(read->block == entry.block);
  RC_ASSERT(read->inbox == entry.inbox);
  RC_ASSERT(read->joined == entry.joined);
  RC_ASSERT(read->holder == entry.holder);
}

}  // namespace holdfast::test
