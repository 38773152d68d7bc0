// A latch against a plain model that shares no code with it: random lives, the same for the scripts
// and for what a memory store has.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include <rapidcheck.h>

namespace holdfast::test {

// What one call came to.
struct latch_said {
  bool refused = false;  // nothing was done
  bool gone = false;     // the run that is waited for is not there any more
  bool done = false;
  std::int64_t left = 0;
  std::string run{};  // that the latch is in; empty: in none
};

// What a latch is, in as few words as can be.
class latch_model {
 public:
  latch_model(std::int64_t count, std::int64_t keep_ms) : count_{count}, keep_ms_{keep_ms} {}

  void pass(std::int64_t now_ms) {
    now_ms_ = now_ms;
    if (run_ && run_->expires_ms <= now_ms) run_.reset();
  }
  latch_said count(const std::string& part, std::int64_t amount, const std::string& run) {
    if (run_ && run_->parts.contains(part)) return said();
    if (amount > left()) return {.refused = true};
    if (!run_) run_ = {run, "", {}, 0};
    run_->parts[part] = amount;
    keep();
    told_ = told_ || left() == 0;
    return said();
  }
  latch_said look(const std::string& awaited, bool waits) {
    if (!awaited.empty() && (!run_ || run_->name != awaited)) {
      const bool had_opened = run_ && run_->before == awaited;
      return {.gone = !had_opened, .done = had_opened, .run = awaited};
    }
    if (!run_) return {.left = count_};
    if (waits && left() > 0) keep();
    return {.done = left() == 0, .left = left(), .run = run_->name};
  }
  latch_said start_anew(const std::string& run) {
    run_ = {run, run_ && left() == 0 ? run_->name : "", {}, now_ms_ + keep_ms_};
    told_ = true;
    return said();
  }
  // Whether those who wait were told since this was asked last.
  bool told() { return std::exchange(told_, false); }
  [[nodiscard]] std::string run() const { return run_ ? run_->name : ""; }

 private:
  struct state {
    std::string name;
    std::string before;
    std::map<std::string, std::int64_t> parts;
    std::int64_t expires_ms;
  };
  [[nodiscard]] std::int64_t left() const {
    std::int64_t left = count_;
    if (run_) {
      for (const auto& [part, amount] : run_->parts)
        left -= amount;
    }
    return left;
  }
  [[nodiscard]] latch_said said() const {
    return {.done = true, .left = left(), .run = run_->name};
  }
  void keep() { run_->expires_ms = std::max(run_->expires_ms, now_ms_ + keep_ms_); }

  const std::int64_t count_;
  const std::int64_t keep_ms_;
  std::int64_t now_ms_ = 0;
  std::optional<state> run_;
  bool told_ = false;
};

// `Latch`: made with a count and what it is kept for, and has the members of the model but run().
template <class Latch>
void live_as_the_model_says() {
  const std::int64_t count = *rc::gen::inRange(1, 6);
  // Odd, and time passes in even steps: Redis has a key for one millisecond more than a memory
  // store has.
  const std::int64_t keep_ms = 1001;
  latch_model model{count, keep_ms};
  Latch latch{count, keep_ms};
  std::int64_t now_ms = 1'700'000'000'000;
  std::string awaited;  // by one that waits
  int runs = 0;
  const int steps = *rc::gen::inRange(1, 60);
  for (int i = 0; i < steps; ++i) {
    now_ms += *rc::gen::element<std::int64_t>(0, 2, 300, 998, 1002);
    model.pass(now_ms);
    latch.pass(now_ms);
    const auto run = "run" + std::to_string(++runs);
    latch_said expected;
    latch_said said;
    const int what = *rc::gen::inRange(0, 10);
    if (what < 5) {
      const auto part = *rc::gen::inRange(0, 8);
      // Half of them name none, and so are new each time.
      const auto name = part < 4 ? "=" + std::to_string(part) : run;
      const std::int64_t amount = *rc::gen::inRange(1, 3);
      expected = model.count(name, amount, run);
      said = latch.count(name, amount, run);
    } else if (what < 9) {
      const bool waits = what < 8;
      if (what == 5) awaited.clear();
      expected = model.look(waits ? awaited : "", waits);
      said = latch.look(waits ? awaited : "", waits);
      if (waits) awaited = expected.gone ? "" : expected.run;
    } else {
      // Half of them were asked before, and their answer was lost.
      const bool again = !model.run().empty() && *rc::gen::inRange(0, 2) == 0;
      const auto named = again ? model.run() : run;
      expected = again ? latch_said{.done = true, .left = model.look("", false).left, .run = named}
                       : model.start_anew(run);
      said = latch.start_anew(named);
    }
    RC_ASSERT(said.refused == expected.refused);
    RC_ASSERT(said.gone == expected.gone);
    if (!expected.refused && !expected.gone) {
      RC_ASSERT(said.done == expected.done);
      RC_ASSERT(said.left == expected.left);
      RC_ASSERT(said.run == expected.run);
    }
    RC_ASSERT(latch.told() == model.told());
  }
}

}  // namespace holdfast::test
