// One connection whose stream tells, and callers that are told.
#include <gmock/gmock.h>

#include "support/event_loop.hpp"
#include "support/watch.hpp"
#include "unit/channel_fixture.hpp"

using namespace std::chrono_literals;

namespace holdfast::test {

namespace {

using stores::redis::channel;
using stores::redis::reply;
using stores::redis::text_of;

class ChannelTold : public Channel {
 protected:
  ChannelTold() : over_{std::make_shared<channel>(loop_.telling(connection_->take()), "db", 0s)} {
    over_->read_when_told(over_);
  }
  // What becomes of it, in words.
  void call(core::time_point until) {
    over_->call(ping, until, false, by_, [this](result<reply> answer) {
      heard_.emplace_back(answer ? text_of(**answer) : answer.error().message);
    });
  }
  [[nodiscard]] bool hears(std::size_t count) {
    return loop_.run_until([&] { return heard_.size() == count; });
  }

  event_loop loop_;
  stores::event_caller by_{loop_};
  std::shared_ptr<channel> over_;
  std::vector<std::string> heard_;
};

}  // namespace

TEST_F(ChannelTold, RepliesGoToTheirCallersInOrder) {
  call(soon());
  call(soon());
  EXPECT_EQ(server_heard(2 * ping.size()), ping + ping);
  server_says("+one\r\n+two\r\n");
  ASSERT_TRUE(hears(2));
  EXPECT_THAT(heard_, testing::ElementsAre("one", "two"));
  EXPECT_TRUE(over_->idle());
  EXPECT_FALSE(over_->suspect());
}

TEST_F(ChannelTold, NoReplyInTimeMakesItSuspectAndItsReplyIsNobodysThen) {
  call(runtime::now() + 5ms);
  ASSERT_TRUE(hears(1));
  EXPECT_THAT(heard_[0], testing::HasSubstr("no reply"));
  EXPECT_TRUE(over_->suspect());
  call(soon());
  server_says("+late\r\n+mine\r\n");
  ASSERT_TRUE(hears(2));
  EXPECT_EQ(heard_[1], "mine");
}

// The loop was busy, or the process stopped, for longer than the caller waits.
TEST_F(ChannelTold, ReplyThatHasComeIsReadThoughTheTimeIsUp) {
  const auto until = runtime::now() + 5ms;
  call(until);
  server_says("+come\r\n");
  let_pass(until - runtime::now());
  ASSERT_TRUE(hears(1));
  EXPECT_EQ(heard_[0], "come");
  EXPECT_FALSE(over_->suspect());
}

TEST_F(ChannelTold, EndOfTheConnectionIsToldToAll) {
  call(soon());
  call(soon());
  server_hangs_up();
  ASSERT_TRUE(hears(2));
  EXPECT_TRUE(over_->broken());
  call(soon());
  EXPECT_EQ(heard_.size(), 3U) << "at once";
}

TEST_F(ChannelTold, ReplyThatIsReadOnAnotherThreadIsToldInTurn) {
  call(soon());
  server_says("+one\r\n");
  std::thread other{[&] { over_->sweep(); }};
  other.join();
  EXPECT_THAT(heard_, testing::IsEmpty());
  ASSERT_TRUE(hears(1));
}

TEST_F(ChannelTold, AwaitEndsWithTheReplyThatItsOwnerGets) {
  std::vector<std::string> order;
  const auto position = over_->post(ping, [&](const auto&) { order.emplace_back("owner"); });
  over_->await(position, soon(), by_, [&] { order.emplace_back("awaited"); });
  server_says("+OK\r\n");
  ASSERT_TRUE(loop_.run_until([&] { return order.size() == 2; }));
  EXPECT_EQ(order.front(), "owner");
}

}  // namespace holdfast::test
