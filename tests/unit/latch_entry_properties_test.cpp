// A latch inside a process against a plain model.
#include <memory>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "stores/memory/latch_entry.hpp"
#include "support/latch_life.hpp"

namespace holdfast::test {

namespace {

class latch_in_memory {
 public:
  latch_in_memory(std::int64_t count, std::int64_t keep_ms)
      : kind_{core::counter_kind::form::latch, static_cast<std::uint32_t>(count),
              std::chrono::milliseconds{keep_ms}} {
    listen();
  }

  void pass(std::int64_t now_ms) {
    now_ = core::time_point{std::chrono::milliseconds{now_ms}};
    entry_.expire(now_);
  }
  latch_said count(const std::string& part, std::int64_t amount, const std::string& run) {
    const auto left = entry_.count(kind_, part, amount, run, now_);
    if (!left) return {.refused = true};
    return {.done = true, .left = *left, .run = run_now()};
  }
  latch_said look(const std::string& awaited, bool waits) {
    auto run = awaited;
    const auto said = entry_.look(kind_, run, waits, now_);
    if (!said) return {.refused = true};
    return {.gone = said->run_is_gone, .done = said->done, .left = said->value, .run = run};
  }
  latch_said start_anew(const std::string& run) {
    const auto left = entry_.start_anew(kind_, run, now_);
    return {.done = true, .left = left, .run = run_now()};
  }
  bool told() {
    if (!wait_->is_over()) return false;
    entry_.remove(wait_);
    listen();
    return true;
  }

 private:
  void listen() {
    entry_.add(wait_ = std::make_shared<stores::pause>(core::never, [] {}));
  }
  [[nodiscard]] std::string run_now() {
    std::string run;
    static_cast<void>(entry_.look(kind_, run, false, now_));
    return run;
  }

  const core::counter_kind kind_;
  core::time_point now_{};
  stores::memory::latch_entry entry_;
  std::shared_ptr<stores::pause> wait_;
};

}  // namespace

RC_GTEST_PROP(LatchEntry, IsAsTheModelSays, ()) { live_as_the_model_says<latch_in_memory>(); }

}  // namespace holdfast::test
