// Sleeping until woken, with nothing lost between the look and the sleep.
#include "runtime/parker.hpp"

#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/clock.hpp"
#include "support/process.hpp"

using namespace std::chrono_literals;

namespace holdfast::test {

using runtime::parker;

namespace {

core::time_point soon() { return runtime::now() + std::chrono::nanoseconds{patience}; }

}  // namespace

TEST(Parker, EveryThreadHasOneOfItsOwn) {
  const auto mine = parker::of_this_thread();
  EXPECT_EQ(parker::of_this_thread(), mine);
  std::thread{[&] { EXPECT_NE(parker::of_this_thread(), mine); }}.join();
}

TEST(Parker, WakeUpThatCameBeforeIsNotLost) {
  parker one;
  one.unpark();
  const auto started = runtime::now();
  one.park(soon());
  EXPECT_LT(runtime::now() - started, patience / 2);
}

TEST(Parker, ManyWakeUpsAreOne) {
  parker one;
  one.unpark();
  one.unpark();
  one.park(soon());
  const auto started = runtime::now();
  one.park(started + 20ms);
  EXPECT_GE(runtime::now() - started, 20ms) << "the second wake-up was kept";
}

TEST(Parker, ParksNoLongerThanAsked) {
  parker one;
  const auto until = runtime::now() + 20ms;
  // For no reason at all it may return, too.
  while (runtime::now() < until)
    one.park(until);
  one.park(core::time_point{});
  EXPECT_GE(runtime::now(), until);
}

TEST(Parker, WakesAThreadThatSleepsForEver) {
  std::atomic<bool> told{false};
  std::shared_ptr<parker> sleeper;
  std::atomic<bool> known{false};
  std::thread thread{[&] {
    sleeper = parker::of_this_thread();
    known = true;
    while (!told)
      parker::of_this_thread()->park(core::never);
  }};
  ASSERT_TRUE(eventually([&] { return known.load(); }));
  told = true;
  sleeper->unpark();
  thread.join();
}

TEST(Parker, OutlivesTheThreadItBelongsTo) {
  std::shared_ptr<parker> left;
  std::thread{[&] { left = parker::of_this_thread(); }}.join();
  left->unpark();
}

// Two threads take turns, each turn one wake-up: a single one that is lost stops them for ever.
TEST(Parker, NoWakeUpIsLostInARace) {
  constexpr int turns = 20'000;
  std::atomic<int> turn{0};
  std::array<std::shared_ptr<parker>, 2> sleepers{std::make_shared<parker>(),
                                                  std::make_shared<parker>()};
  std::atomic<int> late{0};
  const auto play = [&](int me) {
    const auto until = soon();
    auto& mine = *sleepers.at(static_cast<std::size_t>(me));
    auto& other = *sleepers.at(static_cast<std::size_t>(1 - me));
    while (turn < turns) {
      while (turn < turns && turn % 2 != me) {
        if (runtime::now() >= until) {
          ++late;
          turn = turns;
        }
        mine.park(until);
      }
      ++turn;
      other.unpark();
    }
  };
  std::thread a{play, 0};
  std::thread b{play, 1};
  a.join();
  b.join();
  EXPECT_EQ(late, 0);
}

}  // namespace holdfast::test
