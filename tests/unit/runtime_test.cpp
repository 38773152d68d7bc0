// Time, waiting and randomness.
#include <sys/wait.h>
#include <unistd.h>

#include <ctime>
#include <set>
#include <thread>

#include <gtest/gtest.h>

#include "runtime/clock.hpp"
#include "runtime/random.hpp"

using namespace std::chrono_literals;

namespace holdfast::test {

namespace {

core::time_point boot_time() {
  timespec t{};
  ::clock_gettime(CLOCK_BOOTTIME, &t);
  return core::time_point{std::chrono::seconds{t.tv_sec} + std::chrono::nanoseconds{t.tv_nsec}};
}

core::duration as_duration(const timespec& t) {
  return std::chrono::seconds{t.tv_sec} + std::chrono::nanoseconds{t.tv_nsec};
}

}  // namespace

TEST(Clock, IsTheOneThatGoesOnDuringSuspend) {
  const auto before = boot_time();
  const auto now = runtime::now();
  EXPECT_LE(before, now);
  EXPECT_LE(now, boot_time());
}

TEST(Clock, WaitForThePastIsNoWait) {
  EXPECT_EQ(as_duration(runtime::until(core::time_point{})), 0ns);
  EXPECT_EQ(as_duration(runtime::until(runtime::now())), 0ns);
}

TEST(Clock, WaitIsWhatIsLeft) {
  const auto before = runtime::now();
  const auto left = as_duration(runtime::until(before + 90s));
  EXPECT_LE(left, 90s);
  EXPECT_GE(before + left, before + 90s - (runtime::now() - before));
}

TEST(Clock, EndlessWaitIsADayAndLooksAgain) {
  EXPECT_EQ(as_duration(runtime::until(core::never)), 24h);
  EXPECT_EQ(as_duration(runtime::until(runtime::now() + 48h)), 24h);
}

TEST(Random, DrawsDoNotRepeatAcrossBlocksAndThreads) {
  std::set<std::uint64_t> here;
  std::set<std::uint64_t> there;
  std::thread other{[&] {
    for (int i = 0; i < 500; ++i)
      there.insert(runtime::random_bits());
  }};
  for (int i = 0; i < 500; ++i)
    here.insert(runtime::random_bits());
  other.join();
  here.merge(there);
  EXPECT_EQ(here.size(), 1000U);
}

TEST(Random, UsesEveryBit) {
  std::uint64_t ones = 0;
  std::uint64_t zeros = 0;
  for (int i = 0; i < 200; ++i) {
    const auto bits = runtime::random_bits();
    ones |= bits;
    zeros |= ~bits;
  }
  EXPECT_EQ(ones, ~std::uint64_t{0});
  EXPECT_EQ(zeros, ~std::uint64_t{0});
}

// Bits drawn in advance and used by both would make two processes one owner.
TEST(Random, ChildDrawsOtherBitsThanItsParent) {
  static_cast<void>(runtime::random_bits());
  int pipe_ends[2];
  ASSERT_EQ(::pipe(pipe_ends), 0);
  const auto child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const auto drawn = runtime::random_bits();
    const bool told = ::write(pipe_ends[1], &drawn, sizeof drawn) == sizeof drawn;
    ::_exit(told ? 0 : 1);
  }
  std::uint64_t of_child = 0;
  EXPECT_EQ(::read(pipe_ends[0], &of_child, sizeof of_child), ssize_t{sizeof of_child});
  ::close(pipe_ends[0]);
  ::close(pipe_ends[1]);
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_NE(of_child, runtime::random_bits());
}

}  // namespace holdfast::test
