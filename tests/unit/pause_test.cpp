// A wait for a moment, or for a sign, of a thread and of a caller that is told.
#include "stores/pause.hpp"

#include <thread>

#include <gtest/gtest.h>

#include "runtime/clock.hpp"
#include "support/event_loop.hpp"
#include "support/watch.hpp"

using namespace std::chrono_literals;

namespace holdfast::test {

namespace {

using stores::pause;

class Pause : public testing::Test {
 protected:
  [[nodiscard]] std::shared_ptr<pause> until(core::time_point when) {
    return std::make_shared<pause>(when, [this] { ++done_; });
  }
  event_loop loop_;
  int done_ = 0;
};

}  // namespace

TEST_F(Pause, OfAThreadEndsAtItsTime) {
  const auto end = runtime::now() + 5ms;
  until(end)->wait();
  EXPECT_GE(runtime::now(), end);
  EXPECT_EQ(done_, 1);
}

TEST_F(Pause, OfAThreadIsEndedByAnother) {
  const auto one = until(core::never);
  std::thread other{[&] {
    let_pass(5ms);
    one->end();
    one->end();
  }};
  one->wait();
  other.join();
  EXPECT_EQ(done_, 1);
}

TEST_F(Pause, ThatWasEndedBeforeIsOverAtOnce) {
  const auto one = until(core::never);
  one->end();
  EXPECT_EQ(done_, 0) << "only in turn with the caller";
  one->wait();
  const auto two = until(core::never);
  two->end();
  two->watch(loop_);
  EXPECT_TRUE(loop_.run_until([&] { return done_ == 2; }));
}

TEST_F(Pause, ThatIsWatchedEndsOnce) {
  until(runtime::now() + 5ms)->watch(loop_);
  EXPECT_EQ(done_, 0);
  EXPECT_TRUE(loop_.run_until([&] { return done_ == 1; }));
  const auto one = until(runtime::now() + 10ms);
  one->watch(loop_);
  std::thread other{[&] { one->end(); }};
  EXPECT_TRUE(loop_.run_until([&] { return done_ == 2; }));
  other.join();
  loop_.run_for(20ms);
  EXPECT_EQ(done_, 2);
}

TEST_F(Pause, EndsAtAnEarlierTimeIfTold) {
  const auto of_a_thread = until(core::never);
  std::thread other{[&] {
    let_pass(5ms);
    of_a_thread->end_by(runtime::now() + 5ms);
    of_a_thread->end_by(core::never);
  }};
  of_a_thread->wait();
  other.join();
  EXPECT_EQ(done_, 1);
  const auto watched = until(core::never);
  watched->watch(loop_);
  watched->end_by(runtime::now() + 5ms);
  EXPECT_TRUE(loop_.run_until([&] { return done_ == 2; }));
}

}  // namespace holdfast::test
