// Latches on a real server, behind a network that loses what it should carry.
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <future>
#include <thread>

#include <gmock/gmock.h>

#include "client/counting.hpp"
#include "runtime/socket.hpp"
#include "stores/redis/layout.hpp"
#include "stores/redis/redis_store.hpp"
#include "support/built.hpp"
#include "support/event_loop.hpp"
#include "support/proxied_redis.hpp"

using namespace std::chrono_literals;

namespace holdfast::test {
namespace {

namespace scripts = stores::redis::scripts;
using detail::counted;

const std::string counts{scripts::latch_count.sha1};
const std::string looks{scripts::latch_look.sha1};
const std::string resets{scripts::latch_start_anew.sha1};

class Latch : public proxied_redis {
 protected:
  void SetUp() override {
    proxied_redis::SetUp();
    for (const auto* one :
         {&scripts::latch_count, &scripts::latch_look, &scripts::latch_start_anew}) {
      ASSERT_EQ(server.command({"SCRIPT", "LOAD", std::string{one->source}}), one->sha1);
    }
  }
  [[nodiscard]] std::string listening() const {
    const auto channel = stores::redis::latch_channel("all");
    const auto said = server.command({"PUBSUB", "NUMSUB", channel});
    return said.substr(said.rfind('\n') + 1);
  }
  static std::future<bool> wait_for(client& c, std::uint32_t count) {
    return std::async(std::launch::async, [&c, count] { return c.latch("all", count).wait(60s); });
  }
};

TEST_F(Latch, CountWhoseAnswerIsLostCountsOnce) {
  for (const auto how : {fault::swallow_reply, fault::cut_before_reply, fault::cut_before_send}) {
    client c = through_proxy({.operation_timeout = 400ms});
    latch all = c.latch("all", 5);
    all.reset();
    proxy.inject(how, counts);
    EXPECT_EQ(all.count_down(), 4U);
    proxy.inject(how, counts, 2);
    EXPECT_EQ(all.count_down(2), 2U);
    EXPECT_EQ(direct().latch("all", 5).value(), 2U);
  }
}

TEST_F(Latch, CountThatIsNeverAnsweredIsUnknownAndItsPartMayBeCountedAgain) {
  client c = through_proxy({.operation_timeout = 200ms, .unreachable_limit = 500ms});
  latch all = c.latch("all", 2);
  proxy.inject(fault::swallow_reply, counts, 1000);
  EXPECT_EQ(thrown_by([&] { all.count_down("unit"); }), errc::outcome_unknown);
  proxy.clear();
  EXPECT_EQ(all.count_down("unit"), 1U);
}

// The server has counted, and nobody has heard of it: the process cannot know whether to count
// again, and need not.
TEST_F(Latch, ProcessThatIsKilledBeforeItHearsAndStartsAgainCountsOnce) {
  const auto counting = [](const std::string& url, const std::string& part) {
    return process_options{.args = {HOLDFAST_TEST_PROGRAMS "/count_down", url, "all", "2", part}};
  };
  proxy.inject(fault::hold_reply, counts);
  child_process killed{counting(proxy.url(), "unit")};
  ASSERT_TRUE(proxy.await_faults(1));
  ASSERT_TRUE(eventually([&] { return direct().latch("all", 2).value() == 1; }));
  killed.signal(SIGKILL);
  ASSERT_TRUE(killed.wait_exit());
  EXPECT_EQ(run_program(counting(server.url(), "unit")).out, "1\n");
  EXPECT_EQ(run_program(counting(server.url(), "style")).out, "0\n");
}

// Asked for again with the name of the same run, so that it does not undo what was counted since.
TEST_F(Latch, ResetWhoseAnswerIsLostIsDoneOnce) {
  client c = through_proxy({.operation_timeout = 400ms});
  client other = direct();
  c.latch("all", 2).count_down();
  proxy.inject(fault::swallow_reply, resets);
  auto resetting = std::async(std::launch::async, [&] { c.latch("all", 2).reset(); });
  ASSERT_TRUE(proxy.await_faults(1));
  ASSERT_TRUE(eventually([&] { return other.latch("all", 2).value() == 2; }));
  other.latch("all", 2).count_down("unit");
  resetting.get();
  EXPECT_GE(proxy.seen(resets), 2U);
  EXPECT_EQ(other.latch("all", 2).value(), 1U);
}

TEST_F(Latch, WaiterIsWokenByAMessageAndAsksNoMoreThanItHasTo) {
  client waits_here = through_proxy();
  client c = direct();
  auto waits = wait_for(waits_here, 2);
  ASSERT_TRUE(eventually([&] { return listening() == "1"; }));
  ASSERT_TRUE(proxy.await_request(looks, 2));
  c.latch("all", 2).count_down();
  let_pass(300ms);
  EXPECT_EQ(proxy.seen(looks), 2U) << "once before it listened, once after";
  const auto opened = runtime::now();
  c.latch("all", 2).count_down();
  EXPECT_TRUE(waits.get());
  EXPECT_LT(runtime::now() - opened, 2s);
  EXPECT_EQ(proxy.seen(looks), 3U);
}

TEST_F(Latch, LatchThatOpensBeforeTheSubscriptionIsNotMissed) {
  client waits_here = through_proxy();
  client c = direct();
  proxy.inject(fault::hold_request, "SUBSCRIBE");
  auto waits = wait_for(waits_here, 1);
  ASSERT_TRUE(proxy.await_faults(1));
  c.latch("all", 1).count_down();
  proxy.let_go();
  EXPECT_TRUE(waits.get());
}

TEST_F(Latch, LostMessageIsMadeUpForByAskingAgain) {
  client waits_here = through_proxy();
  client c = direct();
  auto waits = wait_for(waits_here, 1);
  ASSERT_TRUE(eventually([&] { return listening() == "1"; }));
  ASSERT_TRUE(proxy.await_request(looks, 2));
  proxy.lose_messages(true);
  c.latch("all", 1).count_down();
  EXPECT_TRUE(waits.get());
}

TEST_F(Latch, WaitOutlastsBrokenConnections) {
  client waits_here = through_proxy({.unreachable_limit = as_long_as_waiting});
  client c = direct();
  auto waits = wait_for(waits_here, 1);
  ASSERT_TRUE(eventually([&] { return listening() == "1"; }));
  proxy.cut_all();
  ASSERT_TRUE(eventually([&] { return listening() == "1"; }));
  c.latch("all", 1).count_down();
  EXPECT_TRUE(waits.get());
}

TEST_F(Latch, DeletedLatchIsToldToThoseWhoWait) {
  client c = direct();
  c.latch("all", 2, {.keep = 3s}).count_down();
  errc code{};
  std::thread waits{[&] {
    code = thrown_by([&] { static_cast<void>(c.latch("all", 2, {.keep = 3s}).wait(patience)); });
  }};
  EXPECT_TRUE(eventually([&] { return listening() == "1"; }));
  EXPECT_TRUE(eventually([&] { return c.counters().waiting_now == 1; }));
  EXPECT_EQ(server.command({"DEL", "all"}), "1");
  waits.join();
  EXPECT_EQ(code, errc::outcome_unknown);
}

TEST_F(Latch, KeyThatIsNoLatchIsRefusedAndLeftAlone) {
  ASSERT_EQ(server.command({"HSET", "all", "uuid:1", "1"}), "1");
  client c = direct();
  EXPECT_EQ(thrown_by([&] { c.latch("all", 2).count_down(); }), errc::wrong_type);
  EXPECT_EQ(thrown_by([&] { c.latch("all", 2).reset(); }), errc::wrong_type);
  EXPECT_EQ(server.command({"HGETALL", "all"}), "uuid:1\n1");
}

TEST_F(Latch, NothingIsLeftWhenItIsForgotten) {
  client c = direct();
  latch all = c.latch("all", 2, {.keep = 1s});
  all.count_down("unit");
  EXPECT_LE(pttl("all"), 1s);
  EXPECT_GT(pttl("all"), 0s);
  all.count_down("style");
  EXPECT_TRUE(eventually([&] { return server.command({"KEYS", "*"}).empty(); }));
}

TEST_F(Latch, ScriptsThatWereFlushedAreSentAgain) {
  client c = direct();
  latch all = c.latch("all", 2);
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(server.command({"SCRIPT", "FLUSH"}), "OK");
    all.reset();
    ASSERT_EQ(server.command({"SCRIPT", "FLUSH"}), "OK");
    EXPECT_EQ(all.value(), 2U);
    ASSERT_EQ(server.command({"SCRIPT", "FLUSH"}), "OK");
    EXPECT_EQ(all.count_down(), 1U);
  }
}

TEST_F(Latch, HandleOfTheParentIsRefusedInAForkedChild) {
  client c = direct();
  latch all = c.latch("all", 2);
  all.count_down();
  const auto child = ::fork();
  if (child == 0) {
    const bool refused = thrown_by([&] { all.count_down(); }) == errc::forked;
    const latch dies = std::move(all);
    ::_exit(refused ? 0 : 1);
  }
  int how = -1;
  ASSERT_EQ(::waitpid(child, &how, 0), child);
  EXPECT_EQ(how, 0);
  EXPECT_EQ(all.value(), 1U);
}

// One thread that never blocks has a thousand waits pending, and counts.
TEST_F(Latch, ThousandWaitsAreToldByEventsOnOneThread) {
  constexpr std::size_t many = 1000;
  event_loop loop;
  stores::event_caller by{loop};
  const auto background = std::make_shared<runtime::background>(2);
  stores::redis::redis_config config;
  config.server.node = "node";
  config.server.connect = [path = proxy.url().substr(5)](core::time_point until) {
    return runtime::connect_unix(path, until);
  };
  config.make_dialer = [&](auto where) { return loop.telling(std::move(where)); };
  const auto c = detail::client_state::make(
      stores::redis::make_redis_store(std::move(config), background), background, {});
  const core::counter_kind kind{core::counter_kind::form::latch, 2, 1h};
  const auto all = detail::open_counter(c, "all", kind);
  ASSERT_TRUE(all);
  std::vector<std::shared_ptr<detail::counting>> pending;
  std::size_t opened = 0;
  std::size_t stopped = 0;
  std::size_t counted_down = 0;
  std::stop_source stop;
  const auto begin = [&](core::counter_request::verb what, std::optional<core::duration> wait,
                         std::stop_token token, std::size_t& done) {
    pending.push_back(std::make_shared<detail::counting>(
        *all, core::counter_request{what, 1, {}}, wait, std::move(token), by,
        [&](const result<counted>& got) {
          ASSERT_TRUE(got) << got.error().message;
          ++(got->ended == counted::how::stopped ? stopped : done);
        }));
    pending.back()->begin();
  };
  using verb = core::counter_request::verb;
  for (std::size_t i = 0; i < many; ++i)
    begin(verb::watch, 60s, i % 4 == 0 ? stop.get_token() : std::stop_token{}, opened);
  ASSERT_TRUE(loop.run_until([&] { return c->counts.waiting_now == many; }));
  stop.request_stop();
  ASSERT_TRUE(loop.run_until([&] { return stopped == many / 4; }));
  begin(verb::subtract, {}, {}, counted_down);
  ASSERT_TRUE(loop.run_until([&] { return counted_down == 1; }));
  EXPECT_EQ(opened, 0U);
  begin(verb::subtract, {}, {}, counted_down);
  ASSERT_TRUE(loop.run_until([&] { return opened == many - many / 4; }));
  pending.clear();
}

}  // namespace
}  // namespace holdfast::test
