// A wait of an operation timeout or longer ended with an ask that had no time left. Over a link
// that takes a few milliseconds its answer never came in time, and instead of "busy" the caller was
// told errc::outcome_unknown about a lock that it never had a chance to get.
#include "core/acquire_machine.hpp"
#include "support/proxied_redis.hpp"

using namespace std::chrono_literals;

namespace holdfast::test {

namespace {

constexpr auto operation = 1s;
constexpr auto longer = 1'200ms;

}  // namespace

class TimedOutWait : public proxied_redis {
 protected:
  // A client that waits, on a link that is slow but works.
  [[nodiscard]] client waiter() {
    client c =
        through_proxy({.lock = {.ttl = 60s}, .wait_limit = longer, .operation_timeout = operation});
    proxy.delay_replies(5ms);
    return c;
  }
};

TEST_F(TimedOutWait, OfTryAcquireIsBusy) {
  client a = direct({.lock = {.ttl = 60s}});
  client b = waiter();
  const lease held = a.mutex("orders").acquire();
  for (const auto wait : {std::chrono::nanoseconds{operation}, std::chrono::nanoseconds{longer}}) {
    std::optional<lease> got;
    std::string what;
    const errc thrown = thrown_by([&] { got = b.mutex("orders").try_acquire(wait); }, &what);
    EXPECT_EQ(thrown, errc{}) << what;
    EXPECT_FALSE(got);
  }
  EXPECT_EQ(b.counters().unknown_outcomes, 0U);
  EXPECT_EQ(b.counters().failures, 0U);
}

TEST_F(TimedOutWait, OfAcquireIsTimedOutAndLeavesNothing) {
  client a = direct({.lock = {.ttl = 60s}});
  client b = waiter();
  lease held = a.mutex("orders").acquire();
  std::string what;
  EXPECT_EQ(thrown_by([&] { (void)b.mutex("orders").acquire(); }, &what), errc::timed_out) << what;
  EXPECT_EQ(b.counters().unknown_outcomes, 0U);
  EXPECT_EQ(b.counters().waiting_now, 0U);
  ASSERT_TRUE(held.release());
  EXPECT_FALSE(exists("orders")) << "what the waiter asked for arrived after it had given up";
  EXPECT_TRUE(a.mutex("orders").try_acquire());
}

TEST(TimedOutWaitMachine, LastAskHasAWholeOperationTimeout) {
  constexpr core::time_point start{1h};
  const core::acquire_rule rule{.started = start,
                                .wait_until = start + 3s,
                                .operation_timeout = 2s,
                                .unreachable_limit = 5s,
                                .release_budget = 1s,
                                .validity = {}};
  core::acquire_machine machine{rule, 1};
  const core::busy busy{holder{}, 60s, false, {}};
  auto step = machine.start(start);
  auto now = start + 1ms;
  while (now < rule.wait_until) {
    ASSERT_EQ(step.what, core::acquire_step::verb::ask);
    EXPECT_GE(step.until, now);
    step = machine.on_answer(busy, now);
    ASSERT_EQ(step.what, core::acquire_step::verb::wait);
    now = step.until;
    step = machine.on_woken(false, now);
  }
  ASSERT_EQ(step.what, core::acquire_step::verb::ask);
  EXPECT_EQ(step.until, rule.wait_until + rule.operation_timeout);
  step = machine.on_answer(busy, now + 5ms);
  EXPECT_EQ(step.what, core::acquire_step::verb::done);
  EXPECT_EQ(machine.outcome(), core::acquire_outcome::busy);
}

}  // namespace holdfast::test
