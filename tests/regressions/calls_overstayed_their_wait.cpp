// A call that asks once, or waits for 10 ms, took two seconds where connections are refused;
// acquire() took 6.8 s on a silent server with a limit of 5 s.
#include "runtime/clock.hpp"
#include "support/proxied_redis.hpp"

using namespace std::chrono_literals;

namespace holdfast::test {

class Overstaying : public proxied_redis {
 protected:
  template <class Call>
  [[nodiscard]] static std::chrono::nanoseconds taken_by(Call call) {
    const auto from = runtime::now();
    call();
    return runtime::now() - from;
  }
};

// Timeouts so long that no slow machine reaches them: what ends is ended by the wait.
TEST_F(Overstaying, RefusedConnectionEndsAShortCallSoon) {
  client c{"redis://127.0.0.1:" + std::to_string(free_port()),
           {.operation_timeout = 60s, .unreachable_limit = 60s}};
  EXPECT_LT(taken_by([&] {
              EXPECT_EQ(thrown_by([&] { (void)c.mutex("orders").try_acquire(); }),
                        errc::store_unreachable);
            }),
            20s);
  EXPECT_LT(taken_by([&] {
              EXPECT_EQ(thrown_by([&] { (void)c.mutex("orders").try_acquire(10ms); }),
                        errc::store_unreachable);
            }),
            20s);
}

// The limit counts from when the first request that failed was sent.
TEST_F(Overstaying, SilentServerEndsAnAcquireAtTheLimit) {
  client c =
      through_proxy({.operation_timeout = 6s, .unreachable_limit = 8s, .release_budget = 200ms});
  proxy.stall_replies(true);
  const auto taken = taken_by([&] {
    const auto code = thrown_by([&] { (void)c.mutex("orders").acquire(); });
    EXPECT_TRUE(code == errc::outcome_unknown || code == errc::store_unreachable);
  });
  EXPECT_GE(taken, 7s);
  EXPECT_LT(taken, 11s) << "not a whole timeout after the limit";
}

TEST_F(Overstaying, OutageIsTolerated) {
  client c = through_proxy({.operation_timeout = 200ms, .unreachable_limit = as_long_as_waiting});
  proxy.inject(fault::cut_before_send, asks, 20);
  EXPECT_TRUE(c.mutex("orders").try_acquire(patience));
  EXPECT_TRUE(c.mutex("orders").try_acquire(forever));
}

}  // namespace holdfast::test
