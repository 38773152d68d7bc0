// Work off the caller's thread: it runs, does not wait for what blocks, and is bounded.
#include "runtime/background.hpp"

#include <atomic>
#include <chrono>
#include <future>
#include <latch>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/clock.hpp"
#include "support/watch.hpp"

using namespace std::chrono_literals;

namespace holdfast::test {

namespace {

using runtime::background;

// Something that happens once, and can be waited for. Made before the threads that tell it, so
// that it goes after them.
class moment {
 public:
  void comes() { promise_.set_value(); }
  void wait() const { future_.wait(); }
  [[nodiscard]] bool came(std::chrono::nanoseconds within = patience) const {
    return future_.wait_for(within) == std::future_status::ready;
  }

 private:
  std::promise<void> promise_;
  std::shared_future<void> future_{promise_.get_future()};
};

// Occupies threads until it is told not to, at the latest when it goes. What it shares with them
// stays until the last of them has left.
class blockade {
 public:
  blockade(background& on, std::ptrdiff_t count) {
    const auto begun = std::make_shared<std::latch>(count);
    for (std::ptrdiff_t i = 0; i < count; ++i) {
      EXPECT_TRUE(on.run([begun, over = over_] {
        begun->count_down();
        over->wait();
      }));
    }
    begun->wait();
  }
  blockade(const blockade&) = delete;
  blockade& operator=(const blockade&) = delete;
  ~blockade() { lift(); }

  void lift() {
    if (!std::exchange(lifted_, true)) over_->comes();
  }

 private:
  const std::shared_ptr<moment> over_ = std::make_shared<moment>();
  bool lifted_ = false;
};

constexpr std::size_t threads_max = 4;
constexpr std::ptrdiff_t all_threads = threads_max;

}  // namespace

TEST(Background, RunsWhatItIsGivenOnAnotherThread) {
  std::promise<std::thread::id> ran;
  moment always;
  background threads{threads_max};
  ASSERT_TRUE(threads.run([&] { ran.set_value(std::this_thread::get_id()); }));
  EXPECT_NE(ran.get_future().get(), std::this_thread::get_id());
  threads.run_always([&] { always.comes(); });
  EXPECT_TRUE(always.came());
}

TEST(Background, StartedAheadItStillRunsWhatComes) {
  moment ran;
  background threads{threads_max};
  EXPECT_TRUE(threads.start());
  EXPECT_TRUE(threads.start());
  ASSERT_TRUE(threads.run([&] { ran.comes(); }));
  EXPECT_TRUE(ran.came());
}

TEST(Background, UsesNoMoreThreadsThanItMay) {
  std::mutex m;
  std::set<std::thread::id> seen;
  std::latch done{100};
  background threads{2};
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(threads.run([&] {
      {
        const std::lock_guard guard{m};
        seen.insert(std::this_thread::get_id());
      }
      done.count_down();
    }));
  }
  done.wait();
  EXPECT_LE(seen.size(), 2U);
}

TEST(Background, BlockedTaskDoesNotStopTheNext) {
  moment next;
  background threads{threads_max};
  blockade blocked{threads, all_threads - 1};
  ASSERT_TRUE(threads.run([&] { next.comes(); }));
  EXPECT_TRUE(next.came());
  blocked.lift();
}

TEST(Background, TaskBeyondItsThreadsRunsWhenOneIsFree) {
  moment next;
  background threads{threads_max};
  blockade blocked{threads, all_threads};
  ASSERT_TRUE(threads.run([&] { next.comes(); }));
  EXPECT_FALSE(next.came(0s));
  blocked.lift();
  EXPECT_TRUE(next.came());
}

TEST(Background, FullQueueRefusesButForWhatMustNotBeDropped) {
  std::latch ran{background::queue_max + 1};
  background threads{threads_max};
  blockade blocked{threads, all_threads};
  for (std::size_t i = 0; i < background::queue_max; ++i) {
    ASSERT_TRUE(threads.run([&] { ran.count_down(); })) << i;
  }
  EXPECT_FALSE(threads.run([] {}));
  threads.run_always([&] { ran.count_down(); });
  blocked.lift();
  ran.wait();  // all of them, and the one that had to be
}

TEST(Background, TimedTasksAreBoundedToo) {
  background threads{threads_max};
  const auto far = runtime::now() + 24h;
  for (std::size_t i = 0; i < background::queue_max; ++i) {
    ASSERT_TRUE(threads.run_at(far, [] {})) << i;
  }
  EXPECT_FALSE(threads.run_at(far, [] {}));
  EXPECT_TRUE(threads.run([] {})) << "the two queues do not crowd each other out";
}

TEST(Background, TimedTaskDoesNotRunEarly) {
  std::promise<core::time_point> ran;
  background threads{threads_max};
  const auto when = runtime::now() + 5ms;
  ASSERT_TRUE(threads.run_at(when, [&] { ran.set_value(runtime::now()); }));
  EXPECT_GE(ran.get_future().get(), when);
}

TEST(Background, TaskThatIsDueSoonerOvertakesOneThatIsDueLater) {
  moment soon;
  background threads{threads_max};
  ASSERT_TRUE(threads.run_at(runtime::now() + 24h, [] {}));
  ASSERT_TRUE(threads.run_at(runtime::now() + 1ms, [&] { soon.comes(); }));
  EXPECT_TRUE(soon.came());
}

TEST(Background, TimedTasksRunInTheOrderOfTheirTimes) {
  std::mutex m;
  std::vector<int> order;
  std::latch done{4};
  background threads{threads_max};
  blockade blocked{threads, all_threads - 1};
  blockade last{threads, 1};
  const auto note = [&](int which) {
    return [&, which] {
      const std::lock_guard guard{m};
      order.push_back(which);
      done.count_down();
    };
  };
  const auto past = runtime::now() - 1s;
  ASSERT_TRUE(threads.run_at(past + 3ms, note(3)));
  ASSERT_TRUE(threads.run_at(past + 1ms, note(1)));
  ASSERT_TRUE(threads.run_at(past + 4ms, note(4)));
  ASSERT_TRUE(threads.run_at(past + 2ms, note(2)));
  last.lift();  // one thread, so that they run one after the other
  done.wait();
  EXPECT_EQ(order, (std::vector{1, 2, 3, 4}));
}

// Two threads that wait for work, of which one hears of the timed tasks: when that one is kept by
// the first of them, the other must see to the second, be it due later or at the same moment.
class BackgroundTimed : public testing::TestWithParam<std::chrono::milliseconds> {};

TEST_P(BackgroundTimed, BlockedTaskDoesNotStopTheNextWhileAThreadIsIdle) {
  moment second;
  moment first_done;
  bool in_time = false;
  std::latch together{2};
  background threads{threads_max};
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(threads.run([&] { together.arrive_and_wait(); }));
  }
  together.wait();
  let_pass(20ms);  // both threads are idle by then, which nothing tells
  const auto when = runtime::now() + 5ms;
  ASSERT_TRUE(threads.run_at(when, [&] {
    in_time = second.came(5s);
    first_done.comes();
  }));
  ASSERT_TRUE(threads.run_at(when + GetParam(), [&] { second.comes(); }));
  first_done.wait();
  EXPECT_TRUE(in_time);
}

INSTANTIATE_TEST_SUITE_P(DueAfter, BackgroundTimed, testing::Values(0ms, 1ms));

TEST(Background, StopDropsWhatHasNotBegunAndWaitsForWhatHas) {
  auto kept = std::make_shared<int>();
  const std::weak_ptr<int> watched = kept;
  std::atomic<int> ran = 0;
  std::atomic<bool> stopped = false;
  std::atomic<bool> waited = false;
  moment over;
  std::latch begun{all_threads};
  background threads{threads_max};
  for (std::ptrdiff_t i = 0; i < all_threads; ++i) {
    ASSERT_TRUE(threads.run([&] {
      begun.count_down();
      over.wait();
      waited = !stopped;
    }));
  }
  begun.wait();
  ASSERT_TRUE(threads.run([&, kept] { ++ran; }));
  ASSERT_TRUE(threads.run_at(runtime::now() - 1s, [&, kept] { ++ran; }));
  kept.reset();
  std::thread stopper{[&] {
    threads.stop();
    stopped = true;
  }};
  while (threads.run([&] { ++ran; }))
    std::this_thread::yield();  // until stop() has begun
  over.comes();
  stopper.join();
  EXPECT_TRUE(waited);
  EXPECT_EQ(ran, 0);
  EXPECT_TRUE(watched.expired()) << "what was dropped is destroyed";
}

TEST(Background, NothingRunsAfterStop) {
  background threads{threads_max};
  bool ran = false;
  threads.stop();
  threads.stop();
  EXPECT_FALSE(threads.run([&] { ran = true; }));
  EXPECT_FALSE(threads.run_at(runtime::now(), [&] { ran = true; }));
  threads.run_always([&] { ran = true; });
  EXPECT_FALSE(ran);
}

TEST(Background, MayBeDestroyedByOneOfItsOwnTasks) {
  // The threads' last owner is their task. Shared moments: nobody waits for that thread's end.
  const auto gone = std::make_shared<moment>();
  const auto handed_over = std::make_shared<moment>();
  std::shared_ptr<background> last{new background{threads_max}, [gone](background* threads) {
                                     delete threads;
                                     gone->comes();
                                   }};
  auto& threads = *last;
  ASSERT_TRUE(threads.run([last, handed_over] { handed_over->wait(); }));
  last.reset();
  handed_over->comes();
  EXPECT_TRUE(gone->came());
}

TEST(Background, TaskMayQueueMoreAndStopItsOwnThreads) {
  moment stopped;
  background threads{threads_max};
  ASSERT_TRUE(threads.run([&] {
    EXPECT_TRUE(threads.run([] {}));
    threads.stop();
    EXPECT_FALSE(threads.run([] {}));
    stopped.comes();
  }));
  EXPECT_TRUE(stopped.came());
}

}  // namespace holdfast::test
