// Commands as bytes, read back by hiredis.
#include "stores/redis/resp.hpp"

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
using stores::redis::reply_reader;
using stores::redis::text_of;

reply read_back(std::string_view bytes) {
  const reply_reader reader{::redisReaderCreate()};
  void* one = nullptr;
  if (::redisReaderFeed(reader.get(), bytes.data(), bytes.size()) != REDIS_OK) return {};
  if (::redisReaderGetReply(reader.get(), &one) != REDIS_OK) return {};
  return reply{static_cast<redisReply*>(one)};
}

}  // namespace

TEST(Resp, CommandIsAnArrayOfBulkStrings) {
  EXPECT_EQ(command{2}.arg("GET").arg("orders").bytes(), "*2\r\n$3\r\nGET\r\n$6\r\norders\r\n");
  EXPECT_EQ(command{1}.arg("").bytes(), "*1\r\n$0\r\n\r\n");
}

TEST(Resp, NumbersAreSentAsText) {
  EXPECT_EQ(command{3}.arg(0LL).arg(-1LL).arg(9'223'372'036'854'775'807LL).bytes(),
            "*3\r\n$1\r\n0\r\n$2\r\n-1\r\n$19\r\n9223372036854775807\r\n");
}

RC_GTEST_PROP(Resp, AnyArgumentsArriveAsTheyAre, (std::vector<std::string> args)) {
  command built{args.size()};
  for (const auto& one : args)
    built.arg(one);
  const auto back = read_back(built.bytes());
  RC_ASSERT(back != nullptr);
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

}  // namespace holdfast::test
