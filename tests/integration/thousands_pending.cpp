// Ten thousand acquisitions of one client, all on one thread that never blocks.
#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <stop_token>
#include <vector>

#include <gtest/gtest.h>

#include "client/acquisition.hpp"
#include "client/lease_state.hpp"
#include "runtime/clock.hpp"
#include "runtime/socket.hpp"
#include "stores/redis/redis_store.hpp"
#include "support/event_loop.hpp"
#include "support/redis_server.hpp"

using namespace std::chrono_literals;

namespace holdfast::test {

namespace {

using detail::acquisition;
using detail::client_state;
using cause = client_state::not_acquired::cause;

constexpr std::size_t many = 10'000;
constexpr std::size_t lock_count = 50;

std::size_t threads_here() {
  const std::filesystem::directory_iterator all{"/proc/self/task"};
  return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

// Whether acquisitions of one client hand a lock on among themselves; otherwise each of them waits
// in the server's queue.
class ThousandsPending : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    stores::redis::redis_config config;
    config.server.node = "node";
    config.server.connect = [path = server_.socket_path()](core::time_point until) {
      return runtime::connect_unix(path, until);
    };
    config.make_dialer = [this](auto where) { return loop_.telling(std::move(where)); };
    client_options options;
    options.hand_over_here = GetParam();
    options.operation_timeout = 30s;  // one thread does it all, on however busy a machine
    client_ = client_state::make(stores::redis::make_redis_store(std::move(config), background_),
                                 background_, options);
    const auto rule = core::make_lease_rule({.ttl = 60s}, options.clock_drift_per_mille);
    for (std::size_t i = 0; i < lock_count; ++i) {
      locks_.push_back(std::make_shared<detail::mutex_state>(
          client_, *client_->open("lock-" + std::to_string(i)), detail::lock_terms{*rule, {}}));
    }
  }

  // Every lock is held, by attempts that this client's other acquisitions know nothing of.
  void hold_all() {
    for (const auto& one : locks_) {
      holders_.push_back(one->lock->store->begin({.ttl = 60s}));
      holders_.back()->ask(soon(), by_, [this](const result<core::answer>& got) {
        ASSERT_TRUE(got && std::holds_alternative<core::grant>(*got));
        ++held_;
      });
    }
    ASSERT_TRUE(loop_.run_until([this] { return held_ == lock_count; }));
  }
  void free_all() {
    for (std::size_t i = 0; i < lock_count; ++i) {
      locks_[i]->lock->store->release(holders_[i]->id(), soon(), by_,
                                      [](const auto& said) { EXPECT_TRUE(said); });
    }
  }

  void begin(std::size_t lock, core::duration wait, std::stop_token stop) {
    pending_.push_back(std::make_shared<acquisition>(locks_[lock], wait, std::move(stop), by_,
                                                     [this, lock](auto got) {
                                                       ASSERT_TRUE(got) << got.error().message;
                                                       if (*got)
                                                         return served(lock, std::move(**got));
                                                       ++told_[got->error().why];
                                                     }));
    pending_.back()->begin();
  }
  // One at a time for each lock, with rising tokens; given back in a later turn.
  void served(std::size_t lock, std::shared_ptr<detail::lease_state> lease) {
    EXPECT_EQ(++holding_[lock], 1);
    EXPECT_LT(last_[lock], lease->token);
    last_[lock] = lease->token;
    loop_.at(runtime::now(), [this, lock, lease] {
      --holding_[lock];
      lease->release(by_, [this, lease](const result<void>& said) {
        EXPECT_TRUE(said) << said.error().message;
        lease->abandon();  // as a user's handle does when it goes: it is what keeps the client
        ++served_;
        // As every handle does that goes: the keeper may be the last to look at the lease, and its
        // thread must not be the one that takes the client apart.
        lease->abandon();
      });
    });
  }
  static core::time_point soon() { return runtime::now() + 30s; }

  redis_server server_;
  event_loop loop_;
  stores::event_caller by_{loop_};
  const std::shared_ptr<runtime::background> background_ = std::make_shared<runtime::background>(2);
  std::shared_ptr<client_state> client_;
  std::vector<std::shared_ptr<detail::mutex_state>> locks_;
  std::vector<std::unique_ptr<stores::attempt>> holders_;
  std::size_t held_ = 0;
  std::vector<std::shared_ptr<acquisition>> pending_;
  std::map<cause, std::size_t> told_;
  std::map<std::size_t, int> holding_;
  std::map<std::size_t, fencing_token> last_;
  std::size_t served_ = 0;
};

}  // namespace

TEST_P(ThousandsPending, AreServedCancelledOrTimedOutAsTold) {
  hold_all();
  const auto threads = threads_here();
  std::stop_source change_of_mind;
  for (std::size_t i = 0; i < many; ++i) {
    const bool is_stopped = i / lock_count % 4 == 2;
    const bool is_short = i / lock_count % 4 == 3;
    begin(i % lock_count, is_short ? 10s : 10min,
          is_stopped ? change_of_mind.get_token() : std::stop_token{});
  }
  ASSERT_TRUE(loop_.run_until([this] { return client_->counts.waits == many; }))
      << client_->counts.waits << " wait";
  EXPECT_EQ(served_, 0U);
  // The client's own, which begin with its first lease or release, and none for a waiter.
  EXPECT_LE(threads_here(), threads + 4);

  change_of_mind.request_stop();
  EXPECT_TRUE(loop_.run_until([this] { return told_[cause::stopped] == many / 4; }))
      << told_[cause::stopped] << " stopped";
  const auto timed_out = [this] { return told_[cause::busy] + told_[cause::behind_our_own]; };
  EXPECT_TRUE(loop_.run_until([&] { return timed_out() == many / 4; }))
      << timed_out() << " timed out";
  EXPECT_EQ(client_->counts.waiting_now, many / 2);
  EXPECT_EQ(served_, 0U);

  free_all();
  EXPECT_TRUE(loop_.run_until([this] { return served_ == many / 2; })) << served_ << " served";
  EXPECT_EQ(client_->counts.waiting_now, 0U);
  EXPECT_EQ(client_->counts.held_now, 0U);
  EXPECT_EQ(server_.command({"EXISTS", "lock-0", "lock-49"}), "0");
}

TEST_P(ThousandsPending, EndWhenTheClientStops) {
  hold_all();
  for (std::size_t i = 0; i < many; ++i)
    begin(i % lock_count, 10min, {});
  ASSERT_TRUE(loop_.run_until([this] { return client_->counts.waits == many; }));
  client_->request_stop();
  EXPECT_TRUE(loop_.run_until([this] { return told_[cause::stopped] == many; }))
      << told_[cause::stopped] << " stopped";
  EXPECT_EQ(client_->counts.waiting_now, 0U);
}

INSTANTIATE_TEST_SUITE_P(One, ThousandsPending, testing::Bool(), [](const auto& one) {
  return one.param ? "ClientHandsOver" : "ServerQueuesAll";
});

}  // namespace holdfast::test
