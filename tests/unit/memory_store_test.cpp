// The store inside a process, used by one thread that never blocks in it.
#include "stores/memory/memory_store.hpp"

#include <functional>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/clock.hpp"
#include "support/event_loop.hpp"

using namespace std::chrono_literals;

namespace holdfast::test {

namespace {

class MemoryByEvents : public testing::Test {
 protected:
  static core::time_point soon() { return runtime::now() + 10s; }
  [[nodiscard]] std::unique_ptr<stores::attempt> begin() {
    return lock_->begin({.ttl = 60s, .may_wait = true, .claim_ttl = 10s});
  }

  event_loop loop_;
  stores::event_caller by_{loop_};
  const std::unique_ptr<stores::store> store_ = stores::memory::make_memory_store("by events");
  const std::shared_ptr<stores::store_lock> lock_ = *store_->open("orders");
};

}  // namespace

TEST_F(MemoryByEvents, ManyAttemptsAreServedInOrder) {
  constexpr std::size_t many = 1000;
  std::vector<std::unique_ptr<stores::attempt>> all;
  std::vector<const stores::attempt*> served;
  std::function<void(stores::attempt&)> go_on = [&](stores::attempt& who) {
    who.ask(soon(), by_, [&](const result<core::answer>& answer) {
      ASSERT_TRUE(answer);
      if (!std::holds_alternative<core::grant>(*answer)) {
        return who.wait(soon(), by_, [&](const auto&) { go_on(who); });
      }
      loop_.at(runtime::now(), [&] {
        served.push_back(&who);
        lock_->release(who.id(), soon(), by_, [](const auto& said) { EXPECT_TRUE(said); });
      });
    });
  };
  for (std::size_t i = 0; i < many; ++i) {
    all.push_back(begin());
    go_on(*all.back());
  }
  ASSERT_TRUE(loop_.run_until([&] { return served.size() == many; })) << served.size();
  for (std::size_t i = 0; i < many; ++i)
    EXPECT_EQ(served[i], all[i].get());
}

TEST_F(MemoryByEvents, WakeEndsTheWaitOrElseTheNext) {
  const auto holder = begin();
  holder->ask(soon(), by_, [](const auto& answer) { EXPECT_TRUE(answer); });
  const auto who = begin();
  who->ask(soon(), by_, [](const auto& answer) { EXPECT_TRUE(answer); });
  int woken = 0;
  who->wait(soon(), by_, [&](const auto&) { ++woken; });
  loop_.run_for(5ms);
  EXPECT_EQ(woken, 0);
  who->wake();
  EXPECT_TRUE(loop_.run_until([&] { return woken == 1; }));
  who->wake();
  who->wait(soon(), by_, [&](const auto&) { ++woken; });
  EXPECT_TRUE(loop_.run_until([&] { return woken == 2; }));
}

}  // namespace holdfast::test
