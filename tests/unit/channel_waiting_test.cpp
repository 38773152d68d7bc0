// How callers on one connection wait for each other: gathering, awaiting, sleeping.
#include <netinet/in.h>
#include <sys/ioctl.h>

#include <array>
#include <atomic>
#include <future>
#include <thread>
#include <vector>

#include <gmock/gmock.h>

#include "support/watch.hpp"
#include "unit/channel_fixture.hpp"

using namespace std::chrono_literals;

namespace holdfast::test {

namespace {

using stores::redis::channel;
using stores::redis::reply;
using stores::redis::text_of;

class ChannelWaiting : public Channel {
 protected:
  [[nodiscard]] bool server_can_read(std::size_t bytes) const {
    int there = 0;
    return ::ioctl(server_.get(), FIONREAD, &there) == 0 &&
           static_cast<std::size_t>(there) >= bytes;
  }
  [[nodiscard]] std::future<bool> caller(core::time_point until) {
    return std::async(std::launch::async,
                      [this, until] { return connection_->call(ping, until, false).has_value(); });
  }
  // So many callers whose commands have arrived.
  [[nodiscard]] std::vector<std::future<bool>> callers(std::size_t count, core::time_point until) {
    std::vector<std::future<bool>> all;
    for (std::size_t i = 1; i <= count; ++i) {
      all.push_back(caller(until));
      EXPECT_TRUE(eventually([&] { return server_can_read(i * ping.size()); }));
    }
    return all;
  }

  // With so many on their way, others gather.
  static constexpr std::size_t gather_from = 8;
};

// A pair of connected TCP sockets: SO_RCVLOWAT means nothing to the other kind.
class ChannelOverTcp : public ChannelWaiting {
 protected:
  ChannelOverTcp() {
    const runtime::unique_fd listener{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    auto* generic = reinterpret_cast<sockaddr*>(&address);
    socklen_t size = sizeof address;
    runtime::unique_fd client{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    if (::bind(listener.get(), generic, size) != 0 || ::listen(listener.get(), 1) != 0 ||
        ::getsockname(listener.get(), generic, &size) != 0 ||
        ::connect(client.get(), generic, size) != 0) {
      std::abort();
    }
    server_.reset(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    connection_.emplace(runtime::socket_stream(std::move(client)), "db:6379",
                        core::duration::zero());
  }
};

}  // namespace

TEST_F(ChannelWaiting, AwaitReturnsWhenTheReplyIsReadAndItsOwnerHasIt) {
  std::atomic<bool> told{false};
  const auto position =
      connection_->post(ping, [&](const result<reply>& answer) { told = answer.has_value(); });
  auto waits = std::async(std::launch::async, [&] { await(position, soon()); });
  EXPECT_NE(waits.wait_for(20ms), std::future_status::ready);
  server_says("+OK\r\n");
  waits.get();
  EXPECT_TRUE(connection_->answered(position));
  EXPECT_TRUE(eventually([&] { return told.load(); }));
  EXPECT_FALSE(connection_->suspect());
}

// A thread may wait for several calls, on several connections.
TEST_F(ChannelWaiting, ThreadThatIsElsewhereDoesNotLead) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
  const runtime::unique_fd elsewhere_answers{ends[1]};
  channel elsewhere{runtime::socket_stream(runtime::unique_fd{ends[0]}), "db:6380", 0s};
  std::atomic<int> answered{0};
  auto several = std::async(std::launch::async, [&] {
    stores::blocking_caller here;
    const auto count = [&](const result<reply>& answer) { answered += answer ? 1 : 0; };
    connection_->call(ping, soon(), false, here, count);
    elsewhere.call(ping, soon(), false, here, count);
    connection_->call(ping, soon(), false, here, count);
    here.run();
  });
  ASSERT_TRUE(eventually([&] { return server_can_read(2 * ping.size()); }));
  server_says("+one\r\n");
  ASSERT_TRUE(eventually([&] { return answered == 1; }));

  auto other = caller(soon());
  ASSERT_TRUE(eventually([&] { return server_can_read(3 * ping.size()); }));
  server_says("+three\r\n+PONG\r\n");
  EXPECT_TRUE(other.get()) << "no thread reads for it";
  ASSERT_EQ(::send(elsewhere_answers.get(), "+two\r\n", 6, MSG_NOSIGNAL), 6);
  several.get();
  EXPECT_EQ(answered, 3);
}

TEST_F(ChannelWaiting, AwaitOfWhatWasAnsweredReturnsAtOnce) {
  const auto position = connection_->post(ping, nullptr);
  server_says("+OK\r\n");
  connection_->sweep();
  await(position, soon());
  EXPECT_TRUE(connection_->idle());
}

TEST_F(ChannelWaiting, AwaitReturnsWhenTheConnectionBreaks) {
  const auto position = connection_->post(ping, nullptr);
  auto waits = std::async(std::launch::async, [&] { await(position, soon()); });
  EXPECT_NE(waits.wait_for(20ms), std::future_status::ready);
  connection_->break_off("enough");
  EXPECT_EQ(waits.wait_for(9s), std::future_status::ready);
  waits.get();
  await(position, soon());
}

TEST_F(ChannelWaiting, AwaitEndsInTimeAndTheReplyIsStillItsOwners) {
  std::string heard;
  const auto position = connection_->post(
      ping, [&](const result<reply>& answer) { heard = answer ? text_of(**answer) : "failed"; });
  await(position, runtime::now() + 5ms);
  EXPECT_EQ(heard, "");
  server_says("+late\r\n");
  connection_->sweep();
  EXPECT_EQ(heard, "late");
}

TEST_F(ChannelWaiting, ManyMayAwaitTheSame) {
  const auto position = connection_->post(ping, nullptr);
  std::vector<std::thread> all;
  for (int i = 0; i < 4; ++i)
    all.emplace_back([&] { await(position, soon()); });
  server_says("+OK\r\n");
  for (auto& one : all)
    one.join();
}

TEST_F(ChannelWaiting, WhatGathersLeavesWithTheNextReply) {
  auto crowd = callers(gather_from, soon());
  for (std::size_t i = 0; i < gather_from; ++i)
    static_cast<void>(server_heard(ping.size()));
  ASSERT_NE(connection_->post(ping, nullptr), 0U);
  auto late = caller(soon());
  server_says("+1\r\n");
  ASSERT_TRUE(eventually([&] { return server_can_read(2 * ping.size()); }))
      << "nobody sends what has gathered";
  for (std::size_t i = 0; i < gather_from + 1; ++i)
    server_says("+1\r\n");
  for (auto& one : crowd)
    EXPECT_TRUE(one.get());
  EXPECT_TRUE(late.get());
}

TEST_F(ChannelWaiting, WhatGathersLeavesAlthoughNoReplyComes) {
  auto crowd = callers(gather_from, runtime::now() + 300ms);
  for (std::size_t i = 0; i < gather_from; ++i)
    static_cast<void>(server_heard(ping.size()));
  ASSERT_NE(connection_->post(ping, nullptr), 0U);
  for (auto& one : crowd)
    EXPECT_FALSE(one.get());
  EXPECT_TRUE(server_can_read(ping.size())) << "a release, say, would never have been sent";
}

TEST_F(ChannelWaiting, WhatGathersLeavesAlthoughTheGathererHasGone) {
  auto crowd = callers(gather_from, soon());
  for (std::size_t i = 0; i < gather_from; ++i)
    static_cast<void>(server_heard(ping.size()));
  EXPECT_FALSE(connection_->call(ping, runtime::now() + 5ms, false)) << "gathered, and gave up";
  for (std::size_t i = 0; i < gather_from; ++i)
    server_says("+1\r\n");
  for (auto& one : crowd)
    EXPECT_TRUE(one.get());
  // Alone again: what is sent now is sent at once, behind what had gathered.
  ASSERT_NE(connection_->post(ping, nullptr), 0U);
  EXPECT_TRUE(server_can_read(2 * ping.size()));
}

// Callers, and commands that nobody waits for, in any order: all arrive, also the last ones.
TEST_F(ChannelWaiting, NothingIsLeftUnsentByACrowd) {
  constexpr int threads = 24;
  constexpr int rounds = 200;
  std::atomic<int> answered{0};
  std::thread server{[&] {
    for (int i = 0; i < 2 * threads * rounds; ++i) {
      if (server_heard(ping.size()) != ping) return;
      server_says("+1\r\n");
    }
  }};
  std::vector<std::thread> crowd;
  std::atomic<int> failed{0};
  for (int t = 0; t < threads; ++t) {
    crowd.emplace_back([&] {
      for (int i = 0; i < rounds; ++i) {
        if (!connection_->call(ping, soon(), false)) ++failed;
        if (connection_->post(ping, [&](const auto&) { ++answered; }) == 0) ++failed;
      }
    });
  }
  for (auto& one : crowd)
    one.join();
  server.join();  // it has heard everything, although nobody calls any more
  EXPECT_EQ(failed, 0);
  EXPECT_TRUE(eventually([&] {
    connection_->sweep();
    return answered == threads * rounds;
  }));
  EXPECT_TRUE(connection_->idle());
}

// Replies as short as they come, one byte at a time, behind any number that nobody waits for.
TEST_F(ChannelOverTcp, NeverSleepsThroughAReplyThatIsAwaited) {
  for (std::size_t posted = 0; posted <= 40; posted += posted < 4 ? 1 : 9) {
    for (std::size_t i = 0; i < posted; ++i)
      ASSERT_NE(connection_->post(ping, nullptr), 0U);
    std::thread server{[&] {
      static_cast<void>(server_heard((posted + 1) * ping.size()));
      for (std::size_t i = 0; i < posted + 1; ++i) {
        for (const char c : std::string_view{":1\r\n"})
          server_says({&c, 1});
      }
    }};
    EXPECT_TRUE(connection_->call(ping, soon(), false)) << "behind " << posted;
    server.join();
  }
}

TEST_F(ChannelOverTcp, SleepingThroughRepliesEndsWhenTheServerHangsUp) {
  for (int i = 0; i < 20; ++i)
    ASSERT_NE(connection_->post(ping, nullptr), 0U);
  std::thread server{[&] {
    static_cast<void>(server_heard(21 * ping.size()));
    server_says(":1\r\n");
    server_hangs_up();
  }};
  const auto started = runtime::now();
  EXPECT_FALSE(connection_->call(ping, soon(), false));
  EXPECT_LT(runtime::now() - started, 9s);
  server.join();
}

// Whoever has it then waits for messages of any length, the last bytes of one included.
TEST_F(ChannelOverTcp, ConnectionThatIsGivenAwayWakesForASingleByte) {
  once_heard([&] { server_says("+PONG\r\n"); });
  ASSERT_TRUE(connection_->call(ping, soon(), false));
  const auto stream = connection_->take();
  int bytes = 0;
  socklen_t size = sizeof bytes;
  ASSERT_EQ(::getsockopt(stream->fd(), SOL_SOCKET, SO_RCVLOWAT, &bytes, &size), 0);
  EXPECT_EQ(bytes, 1);
}

}  // namespace holdfast::test
