// The store on one Redis, used by one thread that never blocks in it.
#include <map>

#include <gmock/gmock.h>

#include "runtime/background.hpp"
#include "runtime/clock.hpp"
#include "runtime/socket.hpp"
#include "stores/redis/layout.hpp"
#include "stores/redis/redis_store.hpp"
#include "support/event_loop.hpp"
#include "support/proxied_redis.hpp"

using namespace std::chrono_literals;

namespace holdfast::test {

namespace {

using core::removal;

class ToldByEvents : public proxied_redis {
 protected:
  using asked = std::optional<result<core::answer>>;
  using removed = std::optional<result<removal>>;
  struct waited {
    bool over = false;
    std::optional<core::grant> granted;
  };

  void SetUp() override {
    proxied_redis::SetUp();
    stores::redis::redis_config config;
    config.server.node = "node";
    config.server.connect = [path = proxy.url().substr(5)](core::time_point until) {
      return runtime::connect_unix(path, until);
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

  static core::time_point soon() { return runtime::now() + 10s; }
  [[nodiscard]] std::unique_ptr<stores::attempt> begin(core::duration claim = 10s) {
    return lock_->begin({.ttl = 60s, .may_wait = true, .claim_ttl = claim});
  }
  [[nodiscard]] asked ask(stores::attempt& who, core::time_point until = soon()) {
    asked got;
    who.ask(until, by_, [&](auto answer) { got = std::move(answer); });
    EXPECT_TRUE(loop_.run_until([&] { return got.has_value(); }));
    return got;
  }
  // It has a place in the queue.
  void join(stores::attempt& who) {
    const auto got = ask(who);
    ASSERT_TRUE(got && *got);
    const auto* met = std::get_if<core::busy>(&**got);
    ASSERT_NE(met, nullptr);
    ASSERT_TRUE(met->queued);
  }
  [[nodiscard]] core::grant hold(stores::attempt& who) {
    const auto got = ask(who);
    const auto* granted = got && *got ? std::get_if<core::grant>(&**got) : nullptr;
    EXPECT_NE(granted, nullptr);
    return granted == nullptr ? core::grant{} : *granted;
  }
  void begin_to_wait(stores::attempt& who, waited& told, core::time_point until = soon()) {
    who.wait(until, by_, [&](auto granted) { told = {true, granted}; });
  }
  [[nodiscard]] waited wait(stores::attempt& who, core::time_point until = soon()) {
    waited told;
    begin_to_wait(who, told, until);
    EXPECT_TRUE(loop_.run_until([&] { return told.over; }));
    return told;
  }
  [[nodiscard]] removed give_back(const core::owner_id& id) {
    removed got;
    lock_->release(id, soon(), by_, [&](auto said) { got = said; });
    EXPECT_TRUE(loop_.run_until([&] { return got.has_value(); }));
    return got;
  }
  [[nodiscard]] bool holds(const stores::attempt& who) const {
    return server.command({"GET", "orders"}).starts_with(std::string{who.id().text()});
  }

  event_loop loop_;
  stores::event_caller by_{loop_};
  const std::shared_ptr<runtime::background> background_ = std::make_shared<runtime::background>(2);
  std::unique_ptr<stores::store> store_;
  std::shared_ptr<stores::store_lock> lock_;
};

}  // namespace

TEST_F(ToldByEvents, LockIsTakenExtendedAndGivenBack) {
  const auto who = begin();
  const auto granted = hold(*who);
  EXPECT_TRUE(holds(*who));
  std::optional<result<stores::renewal>> extended;
  lock_->extend(who->id(), granted.token, 90s, soon(), by_, [&](auto got) { extended = got; });
  ASSERT_TRUE(loop_.run_until([&] { return extended.has_value(); }));
  EXPECT_TRUE((*extended)->renewed);
  std::optional<result<std::vector<stores::renewal>>> renewed;
  store_->renew({{lock_.get(), who->id(), 100s, granted.token}}, soon(), by_,
                [&](auto got) { renewed = got; });
  ASSERT_TRUE(loop_.run_until([&] { return renewed.has_value(); }));
  ASSERT_EQ((*renewed)->size(), 1U);
  EXPECT_TRUE((*renewed)->front().renewed);
  EXPECT_GT(pttl("orders"), 95s);
  EXPECT_EQ(give_back(who->id()).value(), removal::released);
  EXPECT_FALSE(exists("orders"));
}

TEST_F(ToldByEvents, WaitThatIsGrantedEndsWithTheGrant) {
  const auto holder = begin();
  const auto first = hold(*holder);
  const auto who = begin();
  join(*who);
  waited told;
  begin_to_wait(*who, told);
  loop_.run_for(20ms);
  EXPECT_FALSE(told.over);
  const auto before = proxy.seen(asks);
  EXPECT_EQ(give_back(holder->id()).value(), removal::released);
  ASSERT_TRUE(loop_.run_until([&] { return told.over; }));
  ASSERT_TRUE(told.granted);
  EXPECT_GT(told.granted->token, first.token);
  EXPECT_EQ(told.granted->ttl, 10s) << "its claim";
  EXPECT_EQ(proxy.seen(asks), before);
  EXPECT_EQ(give_back(who->id()).value(), removal::released);
}

TEST_F(ToldByEvents, GrantThatCameBeforeTheWaitEndsItAtOnce) {
  const auto holder = begin();
  static_cast<void>(hold(*holder));
  const auto who = begin();
  join(*who);
  EXPECT_FALSE(wait(*who, runtime::now() + 1ms).granted) << "a wait that ended without it";
  EXPECT_EQ(give_back(holder->id()).value(), removal::released);
  loop_.run_for(50ms);
  ASSERT_TRUE(holds(*who));
  EXPECT_TRUE(wait(*who).granted);
  EXPECT_EQ(give_back(who->id()).value(), removal::released);
}

TEST_F(ToldByEvents, GrantThatCameBeforeTheNextAskIsItsAnswer) {
  const auto holder = begin();
  static_cast<void>(hold(*holder));
  const auto who = begin();
  join(*who);
  EXPECT_FALSE(wait(*who, runtime::now() + 1ms).granted);
  EXPECT_EQ(give_back(holder->id()).value(), removal::released);
  loop_.run_for(50ms);
  static_cast<void>(hold(*who));
  loop_.run_for(20ms);
  EXPECT_TRUE(holds(*who)) << "its message is no stray";
  EXPECT_EQ(give_back(who->id()).value(), removal::released);
}

TEST_F(ToldByEvents, WakeEndsTheWaitOrElseTheNext) {
  const auto holder = begin();
  static_cast<void>(hold(*holder));
  const auto who = begin();
  for (const bool queued : {false, true}) {
    if (queued) join(*who);
    waited told;
    begin_to_wait(*who, told);
    loop_.run_for(5ms);
    EXPECT_FALSE(told.over);
    who->wake();
    ASSERT_TRUE(loop_.run_until([&] { return told.over; }));
    who->wake();
    EXPECT_TRUE(wait(*who).over);
    EXPECT_FALSE(wait(*who, runtime::now() + 1ms).granted) << "ends by its time";
  }
}

TEST_F(ToldByEvents, WaitEndsWhenTheInboxBreaksAndTheNextAskOpensItAnew) {
  const auto holder = begin();
  static_cast<void>(hold(*holder));
  const auto who = begin();
  join(*who);
  waited told;
  begin_to_wait(*who, told);
  ASSERT_NE(server.command({"CLIENT", "KILL", "TYPE", "pubsub"}), "0");
  ASSERT_TRUE(loop_.run_until([&] { return told.over; }));
  EXPECT_FALSE(told.granted);
  join(*who);
  begin_to_wait(*who, told = {});
  EXPECT_EQ(give_back(holder->id()).value(), removal::released);
  ASSERT_TRUE(loop_.run_until([&] { return told.over; }));
  EXPECT_TRUE(told.granted);
}

TEST_F(ToldByEvents, AskThatTimesOutIsFollowedByItsRelease) {
  { static_cast<void>(hold(*begin())); }
  ASSERT_EQ(server.command({"DEL", "orders"}), "1");
  const auto who = begin();
  proxy.inject(fault::hold_request, asks);
  const auto got = ask(*who, runtime::now() + 100ms);
  ASSERT_FALSE(*got);
  EXPECT_EQ(got->error().code, errc::outcome_unknown);
  removed said;
  who->withdraw(soon(), by_, [&](auto how) { said = how; });
  ASSERT_TRUE(loop_.run_until([&] { return said.has_value(); }));
  ASSERT_TRUE(*said);
  EXPECT_EQ(**said, removal::unsure);
  const auto calls = scripts_run();
  proxy.let_go();
  ASSERT_TRUE(loop_.run_until([&] { return scripts_run() >= calls + 2; }));
  EXPECT_FALSE(exists("orders"));
}

TEST_F(ToldByEvents, ReleaseThatIsCutOffIsTriedAgain) {
  const auto who = begin();
  static_cast<void>(hold(*who));
  proxy.inject(fault::cut_before_send, releases, 3);
  const auto said = give_back(who->id());
  ASSERT_TRUE(*said);
  EXPECT_FALSE(exists("orders"));
}

TEST_F(ToldByEvents, ReleaseThatNobodyWaitsForIsSentAndNotOvertaken) {
  const auto who = begin();
  static_cast<void>(hold(*who));
  lock_->release_later(who->id(), soon());
  const auto next = begin();
  static_cast<void>(hold(*next));
  EXPECT_TRUE(holds(*next));
}

TEST_F(ToldByEvents, ThoseWhoComeWhileOthersConnectWaitForThat) {
  const auto before = std::stoul(server.info("stats", "total_connections_received"));
  std::vector<std::unique_ptr<stores::attempt>> all;
  std::size_t answered = 0;
  for (int i = 0; i < 20; ++i) {
    all.push_back(lock_->begin({.ttl = 60s}));
    all.back()->ask(soon(), by_, [&](const auto& got) { answered += got ? 1 : 0; });
  }
  ASSERT_TRUE(loop_.run_until([&] { return answered == all.size(); }));
  // One more is the command that counts them.
  EXPECT_LE(std::stoul(server.info("stats", "total_connections_received")), before + 2 + 2);
}

// More than one connection takes at a time.
TEST_F(ToldByEvents, ThousandsAskAtOnce) {
  constexpr std::size_t many = 10'000;
  std::vector<std::unique_ptr<stores::attempt>> all;
  std::size_t answered = 0;
  std::size_t granted = 0;
  for (std::size_t i = 0; i < many; ++i) {
    all.push_back(lock_->begin({.ttl = 60s}));
    all.back()->ask(soon(), by_, [&](const result<core::answer>& got) {
      ++answered;
      granted += got && std::holds_alternative<core::grant>(*got) ? 1 : 0;
      ASSERT_TRUE(got) << got.error().message;
    });
  }
  ASSERT_TRUE(loop_.run_until([&] { return answered == many; })) << answered;
  EXPECT_EQ(granted, 1U);
}

// Each is served once, one after the other, by messages alone.
TEST_F(ToldByEvents, HundredAttemptsWaitOnOneThread) {
  constexpr std::size_t many = 100;
  std::vector<std::unique_ptr<stores::attempt>> all;
  std::size_t served = 0;
  int holding = 0;
  fencing_token last;
  std::function<void(stores::attempt&, const core::grant&)> granted;
  std::function<void(stores::attempt&)> go_on;
  go_on = [&](stores::attempt& who) {
    who.ask(soon(), by_, [&](const result<core::answer>& answer) {
      ASSERT_TRUE(answer) << answer.error().message;
      if (const auto* got = std::get_if<core::grant>(&*answer)) return granted(who, *got);
      who.wait(soon(), by_, [&](const auto& got) { got ? granted(who, *got) : go_on(who); });
    });
  };
  granted = [&](stores::attempt& who, const core::grant& got) {
    EXPECT_EQ(++holding, 1);
    EXPECT_LT(last, got.token);
    last = got.token;
    loop_.at(runtime::now() + 100us, [&] {
      --holding;
      lock_->release(who.id(), soon(), by_, [&](const auto& said) {
        EXPECT_TRUE(said && *said == removal::released);
        ++served;
      });
    });
  };
  for (std::size_t i = 0; i < many; ++i) {
    all.push_back(begin());
    go_on(*all.back());
  }
  ASSERT_TRUE(loop_.run_until([&] { return served == many; })) << served;
  EXPECT_FALSE(exists("orders"));
  EXPECT_FALSE(exists(stores::redis::lock_keys{"orders"}.queue));
}

}  // namespace holdfast::test
