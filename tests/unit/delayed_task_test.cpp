// Work that is asked for often and done seldom.
#include "stores/delayed_task.hpp"

#include <atomic>
#include <memory>

#include <gtest/gtest.h>

#include "runtime/clock.hpp"
#include "support/process.hpp"
#include "support/watch.hpp"

using namespace std::chrono_literals;

namespace holdfast::test {

namespace {

struct owner : std::enable_shared_from_this<owner> {
  explicit owner(int times) : left{times} {}
  void ask() { task.plan(*this); }

  std::shared_ptr<runtime::background> on = std::make_shared<runtime::background>(1);
  std::atomic<int> left;
  std::atomic<int> done{0};
  stores::delayed_task task{*on, 20ms, [this] {
                              ++done;
                              return --left > 0;
                            }};
};

}  // namespace

TEST(DelayedTask, IsDoneOnceForAllWhoAsk) {
  const auto one = std::make_shared<owner>(1);
  const auto begin = runtime::now();
  one->ask();
  one->ask();
  ASSERT_TRUE(eventually([&] { return one->done > 0; }));
  EXPECT_GE(runtime::now() - begin, 20ms);
  let_pass(50ms);
  EXPECT_EQ(one->done, 1);
  one->ask();
  EXPECT_TRUE(eventually([&] { return one->done == 2; }));
}

TEST(DelayedTask, IsDoneAgainAsLongAsItSaysSo) {
  const auto one = std::make_shared<owner>(3);
  one->ask();
  ASSERT_TRUE(eventually([&] { return one->done == 3; }));
  let_pass(50ms);
  EXPECT_EQ(one->done, 3);
}

TEST(DelayedTask, IsNotDoneForAnOwnerThatIsGone) {
  auto one = std::make_shared<owner>(1);
  const auto on = one->on;
  one->ask();
  one.reset();
  std::atomic<bool> later{false};
  ASSERT_TRUE(on->run_at(runtime::now() + 30ms, [&] { later = true; }));
  EXPECT_TRUE(eventually([&] { return later.load(); }));
}

}  // namespace holdfast::test
