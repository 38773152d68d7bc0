// Commands as bytes, and replies that are read back from bytes.
#include "stores/redis/resp.hpp"

#include <array>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

namespace holdfast::test {

namespace {

using stores::redis::command;
using stores::redis::elements_of;
using stores::redis::reply;
using stores::redis::reply_kind;
using stores::redis::reply_reader;
using stores::redis::reply_value;
using stores::redis::text_of;

reply read_back(std::string_view bytes) {
  reply_reader reader;
  reader.feed(bytes);
  auto one = reader.next();
  EXPECT_EQ(reader.trouble(), "") << bytes;
  EXPECT_TRUE(one) << bytes;
  return one ? std::move(one) : std::make_unique<const reply_value>();
}

// Why these bytes cannot be read; empty if there may be more to come.
std::string trouble_with(std::string_view bytes) {
  reply_reader reader;
  reader.feed(bytes);
  while (reader.next()) {
  }
  return std::string{reader.trouble()};
}

constexpr std::string_view not_redis = "the server does not speak the Redis protocol";
constexpr std::string_view too_large = "the server sent a reply that is larger than any we ask for";

}  // namespace

TEST(Resp, CommandIsAnArrayOfBulkStrings) {
  EXPECT_EQ(command{2}.arg("GET").arg("orders").bytes(), "*2\r\n$3\r\nGET\r\n$6\r\norders\r\n");
  EXPECT_EQ(command{1}.arg("").bytes(), "*1\r\n$0\r\n\r\n");
}

TEST(Resp, NumbersAreSentAsText) {
  EXPECT_EQ(command{3}.arg(0LL).arg(-1LL).arg(9'223'372'036'854'775'807LL).bytes(),
            "*3\r\n$1\r\n0\r\n$2\r\n-1\r\n$19\r\n9223372036854775807\r\n");
}

TEST(Resp, OneArgumentIsWrittenAsWithinACommand) {
  EXPECT_EQ("*1\r\n" + stores::redis::as_argument("orders"), command{1}.arg("orders").bytes());
}

RC_GTEST_PROP(Resp, AnyArgumentsArriveAsTheyAre, (std::vector<std::string> args)) {
  command built{args.size()};
  for (const auto& one : args)
    built.arg(one);
  const auto back = read_back(built.bytes());
  const auto fields = elements_of(*back);
  RC_ASSERT(fields.size() == args.size());
  for (std::size_t i = 0; i < args.size(); ++i)
    RC_ASSERT(text_of(*fields[i]) == args[i]);
}

TEST(Resp, OnlyTextHasTextAndOnlyArraysHaveElements) {
  EXPECT_EQ(text_of(*read_back("+OK\r\n")), "OK");
  EXPECT_EQ(text_of(*read_back("-ERR no\r\n")), "ERR no");
  const std::string bulk{"$3\r\na\0b\r\n", 9};
  EXPECT_EQ(text_of(*read_back(bulk)), (std::string_view{"a\0b", 3}));
  for (const auto& other : {":5\r\n", "$-1\r\n", "*0\r\n", "*1\r\n:1\r\n"}) {
    EXPECT_EQ(text_of(*read_back(other)), "") << other;
  }
  EXPECT_TRUE(elements_of(*read_back(":5\r\n")).empty());
  EXPECT_TRUE(elements_of(*read_back("*0\r\n")).empty());
  EXPECT_EQ(elements_of(*read_back("*2\r\n:1\r\n:2\r\n")).size(), 2U);
}

TEST(Resp, EveryKindOfRedis6IsReadAsWhatItIs) {
  struct {
    const char* bytes;
    reply_kind type;
    long long integer;
    const char* text;
  } const cases[] = {
      {"+OK\r\n", reply_kind::status, 0, "OK"},
      {"+\r\n", reply_kind::status, 0, ""},
      {"+a\rb\r\n", reply_kind::status, 0, "a\rb"},
      {"-ERR no\r\n", reply_kind::error, 0, "ERR no"},
      {":0\r\n", reply_kind::integer, 0, ""},
      {":+7\r\n", reply_kind::integer, 7, ""},
      {":-9223372036854775808\r\n", reply_kind::integer, std::numeric_limits<long long>::min(), ""},
      {":9223372036854775807\r\n", reply_kind::integer, std::numeric_limits<long long>::max(), ""},
      {"$0\r\n\r\n", reply_kind::text, 0, ""},
      {"$4\r\na\r\nb\r\n", reply_kind::text, 0, "a\r\nb"},
      {"$-1\r\n", reply_kind::nothing, 0, ""},
      {"*-1\r\n", reply_kind::nothing, 0, ""},
      {"*0\r\n", reply_kind::array, 0, ""},
  };
  for (const auto& one : cases) {
    const auto got = read_back(one.bytes);
    EXPECT_EQ(got->type, one.type) << one.bytes;
    EXPECT_EQ(got->integer, one.integer) << one.bytes;
    EXPECT_EQ(got->text, one.text) << one.bytes;
    EXPECT_TRUE(got->items.empty()) << one.bytes;
  }
}

TEST(Resp, Resp3IsReadAsWhatResp2SaysInItsPlace) {
  EXPECT_EQ(read_back("_\r\n")->type, reply_kind::nothing);
  EXPECT_EQ(read_back("#t\r\n")->integer, 1);
  EXPECT_EQ(read_back("#f\r\n")->type, reply_kind::integer);
  EXPECT_EQ(read_back(",1.5\r\n")->text, "1.5");
  EXPECT_EQ(read_back("(12345678901234567890\r\n")->text, "12345678901234567890");
  EXPECT_EQ(read_back("=6\r\ntxt:ab\r\n")->text, "ab");
  EXPECT_EQ(read_back("!5\r\nERR x\r\n")->type, reply_kind::error);
  EXPECT_EQ(read_back("~2\r\n:1\r\n:2\r\n")->type, reply_kind::array);
  const auto map = read_back("%2\r\n+a\r\n:1\r\n+b\r\n*1\r\n:2\r\n");
  ASSERT_EQ(elements_of(*map).size(), 4U);
  EXPECT_EQ(elements_of(*elements_of(*map)[3])[0]->integer, 2);
}

TEST(Resp, PushIsToldApartFromAnswers) {
  const auto push = read_back(">2\r\n+invalidate\r\n*0\r\n");
  EXPECT_EQ(push->type, reply_kind::push);
  EXPECT_EQ(text_of(*elements_of(*push)[0]), "invalidate");
}

TEST(Resp, AttributesAreReadOver) {
  EXPECT_EQ(read_back("|1\r\n+ttl\r\n:3600\r\n:5\r\n")->integer, 5);
  EXPECT_EQ(read_back("|0\r\n+OK\r\n")->text, "OK");
  const auto list = read_back("*2\r\n|1\r\n|1\r\n+x\r\n+y\r\n+ttl\r\n*1\r\n:9\r\n:5\r\n:6\r\n");
  ASSERT_EQ(elements_of(*list).size(), 2U);
  EXPECT_EQ(elements_of(*list)[0]->integer, 5);
  EXPECT_TRUE(elements_of(*list)[0]->items.empty());
  EXPECT_EQ(elements_of(*list)[1]->integer, 6);
}

TEST(Resp, ElementsAreWalkedInOrder) {
  const auto list = read_back("*3\r\n:1\r\n*2\r\n:2\r\n:3\r\n:4\r\n");
  std::vector<long long> seen;
  for (const auto* one : elements_of(*list))
    seen.push_back(one->integer);
  EXPECT_EQ(seen, (std::vector<long long>{1, 0, 4}));
  EXPECT_EQ(elements_of(*list).subspan(2, 1)[0]->integer, 4);
}

TEST(Resp, ReaderIsBetweenRepliesOnlyWhenAllIsGivenOut) {
  reply_reader reader;
  EXPECT_TRUE(reader.between_replies());
  reader.feed("*1\r\n$2\r\na");
  EXPECT_FALSE(reader.between_replies());
  EXPECT_FALSE(reader.next());
  EXPECT_FALSE(reader.between_replies());
  reader.feed("b\r\n:1\r\n");
  EXPECT_TRUE(reader.next());
  EXPECT_FALSE(reader.between_replies());
  EXPECT_TRUE(reader.next());
  EXPECT_TRUE(reader.between_replies());
  EXPECT_FALSE(reader.next());
}

TEST(Resp, WhatIsNotRedisIsRefused) {
  for (const auto* bytes : {"HTTP/1.1 400 Bad Request\r\n",
                            "\r\n",
                            ":\r\n",
                            ":1x\r\n",
                            ":1 \r\n",
                            ":--1\r\n",
                            ":9223372036854775808\r\n",
                            "$\r\n",
                            "$-2\r\n",
                            "$+\r\n",
                            "$1x\r\na\r\n",
                            "$1\r\nab\r\n",
                            "$1\r\na\rb",
                            "*\r\n",
                            "*-2\r\n",
                            "*x\r\n",
                            "*1\r\n?\r\n",
                            "%-1\r\n",
                            "~-1\r\n",
                            ">-1\r\n",
                            "_x\r\n",
                            "#x\r\n",
                            "=3\r\ntxt\r\n",
                            "!-1\r\n",
                            "$?\r\n",
                            "*?\r\n"}) {
    EXPECT_EQ(trouble_with(bytes), not_redis) << bytes;
  }
}

TEST(Resp, TroubleIsFinal) {
  reply_reader reader;
  reader.feed("+OK\r\n?\r\n");
  EXPECT_TRUE(reader.next());
  EXPECT_FALSE(reader.next());
  EXPECT_EQ(reader.trouble(), not_redis);
  reader.feed("+OK\r\n");
  EXPECT_FALSE(reader.next());
  EXPECT_FALSE(reader.between_replies());
}

TEST(Resp, NestingIsBounded) {
  std::string deepest;
  for (std::size_t i = 0; i < reply_reader::depth_max; ++i)
    deepest += "*1\r\n";
  EXPECT_EQ(trouble_with(deepest + ":1\r\n"), "");
  EXPECT_EQ(trouble_with(deepest + "*0\r\n"), too_large);
  EXPECT_EQ(trouble_with(deepest + "|0\r\n"), too_large);
}

TEST(Resp, LinesAreBounded) {
  const std::string longest(reply_reader::line_bytes_max - 1, 'x');
  EXPECT_EQ(text_of(*read_back("+" + longest + "\r\n")), longest);
  EXPECT_EQ(trouble_with("+" + longest), "");
  EXPECT_EQ(trouble_with("+" + longest + "x\r\n"), too_large);
  EXPECT_EQ(trouble_with("+" + longest + "x"), too_large);
}

TEST(Resp, AnnouncedSizesAreBoundedAndCostNothing) {
  EXPECT_EQ(trouble_with("$67108864\r\n"), too_large);
  EXPECT_EQ(trouble_with("$9223372036854775807\r\n"), too_large);
  EXPECT_EQ(trouble_with("*9223372036854775807\r\n"), too_large);
  EXPECT_EQ(trouble_with("%9223372036854775807\r\n"), too_large);
  EXPECT_EQ(trouble_with("*262145\r\n"), too_large);
  EXPECT_EQ(trouble_with("%131073\r\n"), too_large);
  // Each may be as large as allowed, but not all together.
  EXPECT_EQ(trouble_with("*262144\r\n*1\r\n"), too_large);
  EXPECT_EQ(trouble_with("*2\r\n*262142\r\n"), "");
}

TEST(Resp, ManyLargeTextsInOneReplyAreBounded) {
  reply_reader reader;
  reader.feed("*1000\r\n");
  const std::string megabyte = "$1048576\r\n" + std::string(1024 * 1024, 'x') + "\r\n";
  int fed = 0;
  while (reader.trouble().empty() && fed < 1000) {
    ++fed;
    reader.feed(megabyte);
    EXPECT_FALSE(reader.next());
  }
  EXPECT_EQ(reader.trouble(), too_large);
  EXPECT_EQ(fed, 64);
}

// The bound is for one reply: a connection carries any number of them.
TEST(Resp, BoundsBeginAnewWithEveryReply) {
  reply_reader reader;
  const std::string many = "*200000\r\n";
  for (int i = 0; i < 3; ++i) {
    reader.feed(many);
    for (int k = 0; k < 200'000; ++k)
      reader.feed(":1\r\n");
    const auto got = reader.next();
    ASSERT_TRUE(got);
    EXPECT_EQ(elements_of(*got).size(), 200'000U);
  }
}

}  // namespace holdfast::test
