// TLS on one thread that never blocks: replies and messages come by events.
#include <gtest/gtest.h>

#include "runtime/background.hpp"
#include "runtime/clock.hpp"
#include "runtime/socket.hpp"
#include "stores/redis/redis_store.hpp"
#include "support/certificates.hpp"
#include "support/event_loop.hpp"
#include "support/redis_server.hpp"

using namespace std::chrono_literals;

namespace holdfast::test {

namespace {

class TlsToldByEvents : public testing::Test {
 protected:
  void SetUp() override {
    stores::redis::redis_config config;
    config.server.node = "node";
    config.server.host = "127.0.0.1";
    config.server.tls =
        std::make_shared<runtime::tls_context>(runtime::tls_settings{.ca = ours_.file()});
    config.server.connect = [port = server_.port()](core::time_point until) {
      return runtime::connect_tcp("127.0.0.1", port, until);
    };
    config.make_dialer = [this](auto where) { return loop_.telling(std::move(where)); };
    store_ = stores::redis::make_redis_store(std::move(config), background_);
    store_->on_events({});
    lock_ = *store_->open("orders");
  }
  void TearDown() override {
    store_->close();
    background_->stop();
  }

  static core::time_point soon() { return runtime::now() + patience; }
  [[nodiscard]] std::unique_ptr<stores::attempt> begin() {
    return lock_->begin({.ttl = 60s, .may_wait = true, .claim_ttl = 60s});
  }
  [[nodiscard]] core::answer ask(stores::attempt& who) {
    std::optional<result<core::answer>> got;
    who.ask(soon(), by_, [&](auto answer) { got = std::move(answer); });
    EXPECT_TRUE(loop_.run_until([&] { return got.has_value(); }));
    EXPECT_TRUE(got && *got) << (got && !*got ? got->error().message : "");
    return got && *got ? **got : core::answer{};
  }

  const authority ours_{"our authority"};
  const redis_server server_{
      {.tcp = true, .tls = server_tls{.shows = ours_.issue("server"), .authority = ours_.file()}}};
  event_loop loop_;
  stores::event_caller by_{loop_};
  const std::shared_ptr<runtime::background> background_ = std::make_shared<runtime::background>(2);
  std::unique_ptr<stores::store> store_;
  std::shared_ptr<stores::store_lock> lock_;
};

}  // namespace

TEST_F(TlsToldByEvents, ManyWaitersAreGrantedOneAfterTheOther) {
  constexpr std::size_t many = 100;
  auto first = begin();
  ASSERT_TRUE(std::holds_alternative<core::grant>(ask(*first)));
  std::vector<std::unique_ptr<stores::attempt>> waiting;
  std::size_t granted = 0;
  std::size_t given_back = 0;
  std::uint64_t last_token = 0;
  const auto give_back = [&](const stores::attempt& who) {
    lock_->release(who.id(), soon(), by_, [&](const auto& said) {
      EXPECT_TRUE(said);
      ++given_back;
    });
  };
  for (std::size_t i = 0; i < many; ++i) {
    auto one = begin();
    ASSERT_TRUE(std::holds_alternative<core::busy>(ask(*one)));
    one->wait(soon(), by_, [&, who = one.get()](auto got) {
      ASSERT_TRUE(got);
      EXPECT_GT(got->token.value(), last_token);
      last_token = got->token.value();
      ++granted;
      give_back(*who);
    });
    waiting.push_back(std::move(one));
  }
  give_back(*first);
  EXPECT_TRUE(loop_.run_until([&] { return given_back == many + 1; })) << given_back;
  EXPECT_EQ(granted, many);
}

}  // namespace holdfast::test
