// The acquire machine against a store that answers, fails and stays silent at random.
#include <algorithm>

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "core/acquire_machine.hpp"

using namespace std::chrono_literals;

namespace holdfast::test {

namespace {

using core::acquire_machine;
using core::acquire_outcome;
using core::acquire_rule;
using core::acquire_step;
using core::duration;
using core::time_point;
using verb = acquire_step::verb;

constexpr time_point start{1h};

duration any_ms(int least, int most) {
  return std::chrono::milliseconds{*rc::gen::inRange(least, most + 1)};
}

acquire_rule any_rule() {
  acquire_rule rule;
  rule.started = start;
  rule.wait_until = start + *rc::gen::element<duration>(0ms, 1ms, 50ms, 500ms, 5s);
  rule.operation_timeout = any_ms(1, 500);
  rule.unreachable_limit = any_ms(1, 2000);
  rule.release_budget = any_ms(1, 500);
  rule.validity = {.drift_per_mille = 10, .margin = any_ms(0, 20)};
  return rule;
}

// Plays the store and the caller's stop, keeps time, and checks what no answer may change.
class world {
 public:
  world(const acquire_rule& rule, std::uint64_t seed) : rule_{rule}, machine_{rule, seed} {}

  void run() {
    auto step = machine_.start(now_);
    while (step.what != verb::done) {
      RC_ASSERT(++steps_ < 20'000);
      const auto before = step.what;
      step = follow(step);
      if (before == verb::withdraw) RC_ASSERT(step.what == verb::done);
    }
    check_end();
  }

 private:
  acquire_step follow(const acquire_step& step) {
    withdrew_ = step.what == verb::withdraw;
    switch (step.what) {
      case verb::ask:
        return answer(step);
      case verb::wait:
      case verb::pause: {
        RC_ASSERT(step.until > now_);
        const bool stop = *rc::gen::weightedElement<bool>({{30, false}, {1, true}});
        if (!stop) now_ = step.until;
        stopped_ = stopped_ || stop;
        return machine_.on_woken(stop, now_);
      }
      case verb::withdraw:
        RC_ASSERT(step.until > now_);
        sure_ = *rc::gen::arbitrary<bool>();
        return machine_.on_withdrawn(sure_, now_);
      case verb::done:
        break;
    }
    return {verb::done};
  }

  acquire_step answer(const acquire_step& ask) {
    ++asks_;
    // An ask has its whole time, unless the one before it failed; and none begins once the wait and
    // a moment are over.
    constexpr core::duration slack = 100ms;
    const auto whole = now_ + rule_.operation_timeout;
    RC_ASSERT(failing_ || ask.until == whole);
    RC_ASSERT(ask.until <= whole);
    RC_ASSERT(ask.until >= now_ + std::min<core::duration>(rule_.operation_timeout, slack));
    RC_ASSERT(now_ <= core::after(rule_.wait_until, slack));
    const auto sent = now_;
    const auto took = any_ms(0, 40);
    enum kind { held, queued, granted, silent, refused, broken };
    const auto what = *rc::gen::weightedElement<kind>(
        {{20, held}, {4, queued}, {3, granted}, {4, silent}, {4, refused}, {1, broken}});
    failing_ = what == silent || what == refused;
    switch (what) {
      case held:
      case queued:
        now_ += took;
        queued_ = queued_ || what == queued;
        return machine_.on_answer(
            core::busy{{}, any_ms(0, 3000), what == queued, std::chrono::seconds{1}}, now_);
      case granted: {
        now_ += 3 * took;
        const core::grant got{fencing_token{1}, any_ms(20, 200), sent};
        granted_in_time_ = rule_.validity.deadline(sent, got.ttl) > now_;
        maybe_held_ = maybe_held_ || !granted_in_time_;
        return machine_.on_answer(got, now_);
      }
      case silent:
        now_ = std::max(now_, ask.until);
        maybe_held_ = true;
        return machine_.on_failure({errc::outcome_unknown, "no reply"}, now_);
      case refused:
        now_ += took;
        return machine_.on_failure({errc::store_loading, "loading"}, now_);
      case broken:
        now_ += took;
        return machine_.on_failure({errc::wrong_type, "not a lock"}, now_);
    }
    return {verb::done};
  }

  void check_end() const {
    const auto how = machine_.outcome();
    RC_ASSERT((how == acquire_outcome::granted) == granted_in_time_);
    if (how == acquire_outcome::granted) {
      const auto& got = machine_.granted();
      RC_ASSERT(rule_.validity.deadline(got.counted_from, got.ttl) > now_);
    } else {
      RC_ASSERT(withdrew_ == (maybe_held_ || queued_));
    }
    // What may be held and could not be taken back is never called anything but unknown.
    const bool unknown =
        how == acquire_outcome::failed && machine_.why().code == errc::outcome_unknown;
    if (how != acquire_outcome::granted) RC_ASSERT(unknown == (maybe_held_ && !sure_));
    if (how == acquire_outcome::stopped) RC_ASSERT(stopped_);
    if (how == acquire_outcome::busy) RC_ASSERT(now_ >= rule_.wait_until);
    // Pauses last at least a millisecond, but for the one that the end of the wait cuts short.
    RC_ASSERT(asks_ <= (now_ - start) / 1ms + 2);
  }

  const acquire_rule rule_;
  acquire_machine machine_;
  time_point now_ = start;
  int steps_ = 0;
  int asks_ = 0;
  bool failing_ = false;
  bool maybe_held_ = false;
  bool queued_ = false;
  bool granted_in_time_ = false;
  bool withdrew_ = false;
  bool sure_ = false;
  bool stopped_ = false;
};

}  // namespace

RC_GTEST_PROP(AcquireMachineProperty, EndsInBoundedAsksAndLeavesNothingBehindUnsaid,
              (std::uint64_t seed)) {
  world{any_rule(), seed}.run();
}

}  // namespace holdfast::test
