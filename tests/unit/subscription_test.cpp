// One channel of a server, over a socket pair whose other end plays the server.
#include "stores/redis/subscription.hpp"

#include <sys/socket.h>

#include <array>
#include <cstdlib>
#include <string>
#include <thread>

#include <gmock/gmock.h>

#include "runtime/clock.hpp"
#include "support/event_loop.hpp"
#include "support/watch.hpp"

using namespace std::chrono_literals;

namespace holdfast::test {

namespace {

using stores::redis::subscription;

const std::string confirmed = "*3\r\n$9\r\nsubscribe\r\n$4\r\nnews\r\n:1\r\n";

std::string message(const std::string& text) {
  return "*3\r\n$7\r\nmessage\r\n$4\r\nnews\r\n$" + std::to_string(text.size()) + "\r\n" + text +
         "\r\n";
}

// Gives out one connection that is there already.
class dialed final : public stores::redis::dialer {
 public:
  explicit dialed(std::unique_ptr<runtime::stream> over) : dialer{"db"}, over_{std::move(over)} {}
  void dial(core::time_point, on_connected done) override { done(std::move(over_)); }

 private:
  std::unique_ptr<runtime::stream> over_;
};

class Subscription : public testing::Test {
 protected:
  using opened = result<std::shared_ptr<subscription>>;

  Subscription() {
    std::array<int, 2> ends{};
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) std::abort();
    server_.reset(ends[1]);
    over_ = runtime::socket_stream(runtime::unique_fd{ends[0]});
  }
  void server_says(std::string_view bytes) const {
    ASSERT_EQ(::send(server_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }
  [[nodiscard]] opened open(core::time_point until = runtime::now() + 10s) {
    dialed to{std::move(over_)};
    return stores::wait_here<opened>(
        [&](auto& by, auto done) { subscription::open(to, "news", until, by, std::move(done)); });
  }

  runtime::unique_fd server_;
  std::unique_ptr<runtime::stream> over_;
};

}  // namespace

TEST_F(Subscription, GivesMessagesHoweverTheyAreCut) {
  server_says(confirmed + message("first"));
  const auto made = open();
  ASSERT_TRUE(made) << made.error().message;
  std::array<char, 64> heard{};
  EXPECT_GT(::recv(server_.get(), heard.data(), heard.size(), 0), 0);
  EXPECT_EQ(std::string{heard.data()}, "*2\r\n$9\r\nSUBSCRIBE\r\n$4\r\nnews\r\n");
  EXPECT_EQ((*made)->next(), "first") << "read with the answer";
  EXPECT_FALSE((*made)->receive());
  int count = 0;
  for (const char c : message("second") + message("third")) {
    EXPECT_EQ((*made)->next(), std::nullopt);
    server_says({&c, 1});
    EXPECT_TRUE((*made)->receive());
    const auto got = (*made)->next();
    EXPECT_TRUE(!got || *got == "second" || *got == "third");
    count += got ? 1 : 0;
  }
  EXPECT_EQ(count, 2);
  EXPECT_FALSE((*made)->over());
  server_.reset();
  EXPECT_FALSE((*made)->receive());
  EXPECT_TRUE((*made)->over());
}

TEST_F(Subscription, RefusalIsNotPermitted) {
  server_says("-NOPERM no channels for you\r\n");
  const auto made = open();
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, errc::not_permitted);
}

TEST_F(Subscription, NoAnswerInTimeIsUnreachable) {
  const auto late = open(runtime::now() + 5ms);
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, errc::store_unreachable);
}

TEST_F(Subscription, EndBeforeTheAnswerIsUnreachable) {
  std::thread server{[&] {
    let_pass(5ms);
    server_.reset();
  }};
  const auto made = open();
  server.join();
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, errc::store_unreachable);
}

TEST_F(Subscription, IsToldWhereTheStreamTells) {
  event_loop loop;
  stores::event_caller by{loop};
  dialed to{loop.telling(std::move(over_))};
  std::shared_ptr<subscription> made;
  subscription::open(to, "news", runtime::now() + 10s, by, [&](auto got) { made = *got; });
  server_says(confirmed);
  ASSERT_TRUE(loop.run_until([&] { return made != nullptr; }));
  std::vector<std::string> heard;
  made->on_readable([&] {
    while (made->receive()) {
    }
    while (auto text = made->next())
      heard.push_back(std::move(*text));
  });
  server_says(message("one") + message("two"));
  ASSERT_TRUE(loop.run_until([&] { return heard.size() == 2; }));
  EXPECT_THAT(heard, testing::ElementsAre("one", "two"));
  made.reset();
}

}  // namespace holdfast::test
