// Decides, for one acquisition, when to ask, wait, pause, take back and give up.
#pragma once

#include <optional>

#include <holdfast/result.hpp>

#include "core/backoff.hpp"
#include "core/settings.hpp"
#include "core/types.hpp"

namespace holdfast::core {

struct acquire_rule {
  time_point started;
  time_point wait_until;  // = started: ask once
  duration operation_timeout{};
  duration unreachable_limit{};
  duration release_budget{};
  validity_rule validity;
};

// What to do next. Each is done until `until` at the latest and answered with its event.
struct acquire_step {
  enum class verb {
    ask,       // → on_answer or on_failure
    wait,      // for the store's sign; → on_woken
    pause,     // just time; → on_woken
    withdraw,  // → on_withdrawn
    done,      // look at outcome()
  };
  verb what;
  time_point until{};
};

enum class acquire_outcome {
  granted,
  busy,  // another held it to the end of the wait
  stopped,
  late,    // granted, but expired on arrival and taken back: may be asked anew, with a fresh id
  failed,  // see why()
};

// No I/O, no clock. Not thread-safe. One machine is one attempt: one owner id, asked as often as
// needed, so that an ask whose answer was lost is answered by the next.
class acquire_machine {
 public:
  acquire_machine(const acquire_rule& rule, std::uint64_t seed) noexcept;

  [[nodiscard]] acquire_step start(time_point now) noexcept;
  [[nodiscard]] acquire_step on_answer(const answer& what, time_point now);
  [[nodiscard]] acquire_step on_failure(failure why, time_point now);
  [[nodiscard]] acquire_step on_woken(bool stop, time_point now) noexcept;
  // `sure`: the store confirmed that the attempt holds nothing.
  [[nodiscard]] acquire_step on_withdrawn(bool sure, time_point now);

  [[nodiscard]] acquire_outcome outcome() const noexcept { return outcome_; }
  [[nodiscard]] const grant& granted() const noexcept { return *grant_; }
  [[nodiscard]] const failure& why() const noexcept { return why_; }
  // Whether another holder was met, and who it was last.
  [[nodiscard]] const std::optional<busy>& met() const noexcept { return met_; }

 private:
  [[nodiscard]] acquire_step ask(time_point now) noexcept;
  [[nodiscard]] acquire_step finish(acquire_outcome how, time_point now) noexcept;
  // When an outage is not tolerated any longer. Only while there is one.
  [[nodiscard]] time_point give_up_at() const noexcept;

  acquire_rule rule_;
  backoff poll_;
  backoff retry_;
  acquire_outcome outcome_ = acquire_outcome::busy;
  std::optional<grant> grant_;
  std::optional<busy> met_;
  failure why_;
  time_point asked_at_{};
  std::optional<time_point> failing_since_;
  bool may_hold_ = false;  // an ask went unanswered
  bool queued_ = false;
};

}  // namespace holdfast::core
