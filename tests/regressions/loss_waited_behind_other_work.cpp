// Stop callbacks, observers and releases that had to be tried again shared four threads. Whatever
// kept those busy kept lost() from firing: a dead server with a few releases to retry, a slow
// observer with many events, another lease's callback that blocks. The store had let go before the
// holder was told.
//
// "In time" is before the store could let go; the leases here have a second and more for that.
#include <atomic>
#include <functional>
#include <future>
#include <memory>
#include <stop_token>
#include <thread>
#include <vector>

#include "support/proxied_redis.hpp"

using namespace std::chrono_literals;

namespace holdfast::test {

namespace {

// More than the threads they once shared, fewer than losses have to themselves.
constexpr int crowd = 8;
const lock_options watched{.ttl = 3s, .margin = 1'200ms, .renew = false};

// Closed until the test is over, also if it fails. Declare it after what is to be set free.
class gate_keeper {
 public:
  explicit gate_keeper(std::promise<void>& gate) : gate_{gate} {}
  gate_keeper(const gate_keeper&) = delete;
  gate_keeper& operator=(const gate_keeper&) = delete;
  ~gate_keeper() { gate_.set_value(); }

 private:
  std::promise<void>& gate_;
};

// Takes until the gate opens over every renewal it is told of.
class stuck_observer final : public observer {
 public:
  explicit stuck_observer(std::shared_future<void> gate) : gate_{std::move(gate)} {}
  void on_event(const event& what) noexcept override {
    if (what.type == event::kind::renewed) gate_.wait();
  }

 private:
  const std::shared_future<void> gate_;
};

std::string numbered(int i) { return "other/" + std::to_string(i); }

}  // namespace

// Many releases are under way when the server is silenced; a loss is told in time all the same.
void expect_told_in_time(void (redis_server::*silence)(), void (redis_server::*revive)()) {
  redis_server server;
  client c{server.url(), {.release_budget = 20s}};
  std::vector<lease> others;
  for (int i = 0; i < 2 * crowd; ++i) {
    others.push_back(c.mutex(numbered(i), {.ttl = 60s, .renew = false}).acquire());
  }
  const auto asked = runtime::now();
  const lease held = c.mutex("orders", watched).acquire();
  watched_token lost{held.lost()};
  (server.*silence)();
  others.clear();
  const auto expiry = asked + watched.ttl;
  const bool fired = lost.wait(expiry - runtime::now());
  (server.*revive)();  // so that the releases come to an end
  ASSERT_TRUE(fired);
  EXPECT_LT(lost.at(), expiry);
}

TEST(LossWaitedBehind, ReleasesThatAreTriedAgain) {
  expect_told_in_time(&redis_server::kill9, &redis_server::restart);
}

TEST(LossWaitedBehind, ReleasesThatNobodyAnswers) {
  expect_told_in_time(&redis_server::pause, &redis_server::resume);
}

TEST(LossWaitedBehind, ObserverFloodedWithEvents) {
  std::promise<void> gate;
  const lock_options renewed{.ttl = 3s, .margin = 1'200ms};
  client c{
      "memory:observed",
      {.lock = renewed, .observer = std::make_shared<stuck_observer>(gate.get_future().share())}};
  const gate_keeper open_at_the_end{gate};
  std::vector<lease> others;
  for (int i = 0; i < crowd; ++i)
    others.push_back(c.mutex(numbered(i)).acquire());
  const lease held = c.mutex("orders").acquire();
  watched_token lost{held.lost()};
  ASSERT_TRUE(eventually([&] { return c.counters().renewals > crowd; }));
  const auto left = held.remaining() + *renewed.margin;
  c.break_lock("orders", held.token());  // seen at the next renewal, which is due long before
  EXPECT_TRUE(lost.wait(left));
}

TEST(LossWaitedBehind, AnotherLeasesStopCallback) {
  using callback = std::stop_callback<std::function<void()>>;
  std::promise<void> gate;
  const auto opened = gate.get_future().share();
  std::atomic<int> blocked{0};
  client c{"memory:callbacks"};
  const auto asked = runtime::now();
  const lease held = c.mutex("orders", watched).acquire();
  watched_token lost{held.lost()};
  std::vector<lease> others;
  std::vector<std::unique_ptr<callback>> callbacks;
  const gate_keeper open_at_the_end{gate};
  const auto here = std::this_thread::get_id();
  for (int i = 0; i < crowd; ++i) {
    others.push_back(c.mutex(numbered(i), {.ttl = 500ms, .renew = false}).acquire());
    callbacks.push_back(std::make_unique<callback>(others.back().lost(), [&] {
      if (std::this_thread::get_id() == here) return;  // lost already, on a slow machine
      ++blocked;
      opened.wait();
    }));
  }
  const auto expiry = asked + watched.ttl;
  ASSERT_TRUE(lost.wait(expiry - runtime::now()));
  EXPECT_LT(lost.at(), expiry);
  EXPECT_GT(blocked, 0);
}

}  // namespace holdfast::test
