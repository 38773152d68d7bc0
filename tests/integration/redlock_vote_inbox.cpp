// How a waiter hears that it is its turn, apart from waiting: there it would ask again soon anyway,
// and a hint that nobody heard would not be missed.
#include <array>
#include <future>

#include <gtest/gtest.h>

#include "runtime/background.hpp"
#include "runtime/clock.hpp"
#include "runtime/random.hpp"
#include "runtime/socket.hpp"
#include "stores/redlock/hints.hpp"
#include "support/process.hpp"
#include "support/redis_server.hpp"

using namespace std::chrono_literals;

namespace holdfast::test {

namespace {

using stores::redlock::hints;
using stores::redlock::line;

class RedlockHints : public ::testing::Test {
 protected:
  RedlockHints() {
    heard_.open();
    EXPECT_TRUE(eventually([&] { return listens(0) && listens(1) && listens(2); }));
  }
  ~RedlockHints() override {
    heard_.close();
    for (auto& one : waiting_)
      one.wait();
    for (const auto& one : lines_)
      one->close();
    connecting_->stop();
  }

  core::owner_id newcomer() {
    const auto id = runtime::fresh_owner();
    heard_.expect(id);
    return id;
  }
  // Longer than any test may take.
  std::shared_future<void> wait(const core::owner_id& id, const std::stop_token& stop = {}) {
    waiting_.emplace_back(std::async(std::launch::async, [this, id, stop] {
      heard_.wait(id, core::after(runtime::now(), 10min), stop);
    }));
    return waiting_.back();
  }
  void call(const core::owner_id& id, std::size_t node) {
    const auto channel = "holdfast:hint:" + std::string{heard_.inbox()};
    EXPECT_EQ(servers_[node].command({"PUBLISH", channel, std::string{id.text()}}), "1");
  }
  static bool over(const std::shared_future<void>& one) {
    return eventually([&] { return one.wait_for(0s) == std::future_status::ready; });
  }

  std::array<redis_server, 3> servers_;

 private:
  bool listens(std::size_t node) {
    return servers_[node].command({"PUBSUB", "CHANNELS", "holdfast:hint:*"}).find("hint") !=
           std::string::npos;
  }
  std::vector<std::shared_ptr<line>> lines() {
    for (const auto& server : servers_) {
      const stores::redis::endpoint where{"node",
                                          [path = server.socket_path()](core::time_point until) {
                                            return runtime::connect_unix(path, until);
                                          },
                                          "", "", 0};
      lines_.push_back(std::make_shared<line>(where, 500ms, connecting_, line::hooks{}));
    }
    return lines_;
  }

  std::shared_ptr<runtime::background> connecting_ = std::make_shared<runtime::background>(3);
  std::vector<std::shared_ptr<line>> lines_;
  std::vector<std::shared_future<void>> waiting_;

 protected:
  hints heard_{lines(), 2, connecting_};
};

}  // namespace

TEST_F(RedlockHints, MajorityOfCallsWakesTheOneWhoIsCalled) {
  const auto id = newcomer();
  const auto one = wait(id);
  call(id, 0);
  call(id, 2);
  EXPECT_TRUE(over(one));
}

// The others may have lost it, or be down.
TEST_F(RedlockHints, OneCallSufficesAfterAMoment) {
  const auto id = newcomer();
  const auto one = wait(id);
  call(id, 1);
  EXPECT_TRUE(over(one));
}

TEST_F(RedlockHints, CallThatCameBeforeTheWaitCounts) {
  const auto id = newcomer();
  call(id, 0);
  EXPECT_TRUE(over(wait(id)));
}

// One of them reads for all, and it is not known which: whoever is called goes, and the rest hear
// on.
TEST_F(RedlockHints, WhoeverLeavesAnotherOneListens) {
  constexpr int many = 8;
  std::vector<std::pair<core::owner_id, std::shared_future<void>>> all;
  for (int i = 0; i < many; ++i) {
    const auto id = newcomer();
    all.emplace_back(id, wait(id));
  }
  for (int i = 0; i < many; ++i) {
    const auto& [id, one] = all[static_cast<std::size_t>(i * 3 % many)];
    call(id, static_cast<std::size_t>(i % 3));
    ASSERT_TRUE(over(one)) << i;
  }
}

TEST_F(RedlockHints, WhoeverStopsWaitingAnotherOneListens) {
  const auto first = newcomer();
  const auto second = newcomer();
  std::stop_source stop_first;
  std::stop_source stop_second;
  const auto one = wait(first, stop_first.get_token());
  const auto other = wait(second, stop_second.get_token());
  stop_first.request_stop();
  ASSERT_TRUE(over(one));
  const auto third = newcomer();
  const auto another = wait(third);
  stop_second.request_stop();
  ASSERT_TRUE(over(other));
  call(third, 0);
  EXPECT_TRUE(over(another));
}

TEST_F(RedlockHints, NodeThatIsGoneCostsItsHintOnly) {
  const auto id = newcomer();
  const auto one = wait(id);
  servers_[0].kill9();
  call(id, 1);
  call(id, 2);
  EXPECT_TRUE(over(one));
}

TEST_F(RedlockHints, CloseWakesEverybody) {
  const auto one = wait(newcomer());
  const auto other = wait(newcomer());
  heard_.close();
  EXPECT_TRUE(over(one));
  EXPECT_TRUE(over(other));
}

}  // namespace holdfast::test
