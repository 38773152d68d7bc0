// One connection shared by callers, over a socket pair whose other end plays the server.
#include "stores/redis/channel.hpp"

#include <array>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>

#include "support/watch.hpp"
#include "unit/channel_fixture.hpp"

using namespace std::chrono_literals;
using namespace std::string_literals;

namespace holdfast::test {

namespace {

using stores::redis::channel;
using stores::redis::command;
using stores::redis::reply;
using stores::redis::text_of;
using testing::HasSubstr;

}  // namespace

TEST_F(Channel, LoneCallerSendsAndReadsItsReply) {
  std::string heard;
  serving_ = std::thread{[&] {
    heard = server_heard(ping.size());
    server_says("+PONG\r\n");
  }};
  std::uint64_t position = 0;
  const auto answer = stores::wait_here<result<reply>>([&](auto& by, auto done) {
    connection_->call(ping, soon(), true, by, std::move(done), &position);
  });
  served();
  ASSERT_TRUE(answer);
  EXPECT_EQ(text_of(**answer), "PONG");
  EXPECT_EQ(heard, ping);
  EXPECT_EQ(position, 1U);
  EXPECT_TRUE(connection_->answered(position));
  EXPECT_TRUE(connection_->idle());
  EXPECT_FALSE(connection_->suspect());
}

TEST_F(Channel, ErrorReplyIsAReplyNotAFailure) {
  once_heard([&] { server_says("-LOADING\r\n"); });
  const auto answer = connection_->call(ping, soon(), true);
  ASSERT_TRUE(answer);
  EXPECT_EQ((*answer)->type, stores::redis::reply_kind::error);
  EXPECT_FALSE(connection_->broken());
}

TEST_F(Channel, NoReplyInTimeIsUnknownAndMakesItSuspect) {
  const auto answer = connection_->call(ping, at_once(), false);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, errc::outcome_unknown);
  ASSERT_EQ(answer.error().nodes.size(), 1U);
  EXPECT_EQ(answer.error().nodes[0].node, "db:6379");
  EXPECT_TRUE(connection_->suspect());
  EXPECT_FALSE(connection_->broken());
  EXPECT_FALSE(connection_->idle());
}

TEST_F(Channel, LateReplyIsNotTakenForThatOfTheNextCommand) {
  ASSERT_FALSE(connection_->call(ping, at_once(), false));
  server_says("+late\r\n+mine\r\n");
  const auto answer = connection_->call(ping, soon(), false);
  ASSERT_TRUE(answer);
  EXPECT_EQ(text_of(**answer), "mine");
  EXPECT_TRUE(connection_->idle());
}

TEST_F(Channel, HangingUpWithACommandSentIsUnknownAndBreaksIt) {
  once_heard([&] { server_hangs_up(); });
  const auto answer = connection_->call(ping, soon(), true);
  served();
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, errc::outcome_unknown);
  EXPECT_THAT(answer.error().message, HasSubstr("db:6379"));
  EXPECT_TRUE(connection_->broken());
}

TEST_F(Channel, BrokenOneTakesNothingAndSaysThatNothingWasSent) {
  connection_->break_off("enough");
  const auto answer = connection_->call(ping, soon(), true);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, errc::store_unreachable);
  bool called = false;
  EXPECT_EQ(connection_->post(ping, [&](const auto&) { called = true; }), 0U);
  EXPECT_FALSE(called);
}

TEST_F(Channel, CommandThatNeverLeftIsNotUnknown) {
  server_hangs_up();
  const auto answer = connection_->call(ping, soon(), true);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, errc::store_unreachable);
}

TEST_F(Channel, WordsThatNobodyAskedForAreNotTakenForAReply) {
  server_says("+unasked\r\n");
  let_pass(2 * channel::trusted_idle_max);
  const auto answer = connection_->call(ping, soon(), true);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, errc::store_unreachable);
  EXPECT_TRUE(server_heard_no_more());
}

TEST_F(Channel, ServerThatIsNotRedisIsIncompatible) {
  once_heard([&] { server_says("HTTP/1.1 400 Bad Request\r\n\r\n"); });
  const auto answer = connection_->call(ping, soon(), true);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, errc::incompatible);
  EXPECT_TRUE(connection_->broken());
}

TEST_F(Channel, PostedCommandIsSentAtOnceAndItsReplyReadBySweep) {
  std::string heard;
  const auto position = connection_->post(
      ping, [&](const result<reply>& answer) { heard = answer ? text_of(**answer) : "failed"; });
  EXPECT_EQ(position, 1U);
  EXPECT_EQ(server_heard(ping.size()), ping);
  connection_->sweep();
  EXPECT_EQ(heard, "");
  EXPECT_FALSE(connection_->answered(position));
  server_says("+OK\r\n");
  connection_->sweep();
  EXPECT_EQ(heard, "OK");
  EXPECT_TRUE(connection_->answered(position));
}

TEST_F(Channel, PostedReplyIsReadByTheNextCaller) {
  std::vector<std::string> order;
  ASSERT_EQ(connection_->post(ping, [&](const auto&) { order.emplace_back("posted"); }), 1U);
  server_says("+one\r\n+two\r\n");
  const auto answer = connection_->call(ping, soon(), true);
  ASSERT_TRUE(answer);
  EXPECT_EQ(text_of(**answer), "two");
  EXPECT_EQ(order, std::vector{"posted"s});
}

TEST_F(Channel, PostedCommandHearsOfTheBreakOnce) {
  int calls = 0;
  errc code{};
  ASSERT_EQ(connection_->post(ping,
                              [&](const result<reply>& answer) {
                                ++calls;
                                if (!answer) code = answer.error().code;
                              }),
            1U);
  connection_->break_off("enough");
  connection_->break_off("again");
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(code, errc::outcome_unknown);
  EXPECT_TRUE(connection_->idle()) << "nothing is waited for any more";
}

TEST_F(Channel, DestroyingItTellsWhoWaits) {
  int calls = 0;
  ASSERT_EQ(connection_->post(ping, [&](const auto&) { ++calls; }), 1U);
  connection_.reset();
  EXPECT_EQ(calls, 1);
}

TEST_F(Channel, TooManyInFlightIsOverloadedAndHarmsNobody) {
  for (std::size_t i = 0; i < channel::in_flight_max; ++i) {
    ASSERT_EQ(connection_->post("x", nullptr), i + 1);
  }
  const auto answer = connection_->call(ping, soon(), true);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, errc::overloaded);
  EXPECT_EQ(connection_->post(ping, nullptr), 0U);
  EXPECT_EQ(connection_->sent(), channel::in_flight_max);
  EXPECT_FALSE(connection_->broken());
}

TEST_F(Channel, RepliesSplitAnywhereArriveWhole) {
  once_heard([&] {
    for (const char c : "$5\r\nhe\r\no\r\n"s)
      server_says({&c, 1});
  });
  const auto answer = connection_->call(ping, soon(), true);
  ASSERT_TRUE(answer);
  EXPECT_EQ(text_of(**answer), "he\r\no");
}

TEST_F(Channel, ManyCallersEachGetTheirOwnReply) {
  constexpr int callers = 4;
  constexpr int calls = 200;
  // An echo: "*2 ECHO text" is answered with text.
  const auto echo = [](const std::string& text) {
    return command{2}.arg("ECHO").arg(text).bytes();
  };
  const auto request_bytes = echo("00000").size();
  std::thread server{[&] {
    for (int i = 0; i < callers * calls; ++i) {
      const auto request = server_heard(request_bytes);
      server_says("+" + request.substr(request_bytes - 7, 5) + "\r\n");
    }
  }};
  std::array<int, callers> wrong{};
  std::vector<std::thread> crowd;
  for (int c = 0; c < callers; ++c) {
    crowd.emplace_back([&, c] {
      for (int i = 0; i < calls; ++i) {
        const auto text = std::to_string(10'000 * (c + 1) + i);
        const auto answer = connection_->call(echo(text), soon(), false);
        wrong.at(static_cast<std::size_t>(c)) += !answer || text_of(**answer) != text ? 1 : 0;
      }
    });
  }
  for (auto& one : crowd)
    one.join();
  server.join();
  EXPECT_EQ(wrong, (std::array<int, callers>{}));
  EXPECT_EQ(connection_->sent(), std::uint64_t{callers * calls});
  EXPECT_TRUE(connection_->idle());
}

// A caller whose connection took no more bytes looked at neither: it spun until the socket did.
TEST_F(Channel, RepliesAreReadWhileTheSocketTakesNoMore) {
  const std::string more_than_fits(std::size_t{16} * 1024 * 1024, 'x');
  ASSERT_NE(connection_->post(more_than_fits, nullptr), 0U);
  server_says("+OK\r\n+PONG\r\n");
  const auto answer = connection_->call(ping, soon(), true);
  ASSERT_TRUE(answer) << answer.error().message;
}

}  // namespace holdfast::test
