// Waiting for a moment, or for a sign from elsewhere in the process.
#pragma once

#include <atomic>
#include <functional>
#include <memory>

#include "core/types.hpp"
#include "runtime/parker.hpp"
#include "stores/waiting.hpp"

namespace holdfast::stores {

// Time that passes for one caller, on its own or as part of a wait for something else. Made on the
// thread that waits for it, if one does. Others may end it from any thread, at any time.
class pause : public waiting, public std::enable_shared_from_this<pause> {
 public:
  // Calls `done` at `until`, or after end().
  pause(core::time_point until, std::function<void()> done);

  void wait() override;
  void watch(timers& by) override;

  // The wait is over now, if it is not yet.
  void end();
  // The wait is over at `when`, if not before.
  void end_by(core::time_point when);
  [[nodiscard]] bool is_over() const noexcept;

  // Which thread waits, if one does.
  [[nodiscard]] const std::shared_ptr<runtime::parker>& thread() const noexcept { return sleeper_; }

 protected:
  // Returns when the wait is over, or for no reason.
  void sleep() noexcept { sleeper_->park(until_); }
  [[nodiscard]] core::time_point until() const noexcept { return until_; }
  // From any thread: the wait is over, or is over sooner.
  virtual void wake_thread() noexcept { sleeper_->unpark(); }
  // On the caller's turn: the wait is over.
  void finish();

 private:
  const std::shared_ptr<runtime::parker> sleeper_ = runtime::parker::of_this_thread();
  std::atomic<core::time_point> until_;
  std::atomic<bool> ended_{false};
  std::atomic<timers*> by_{nullptr};
  std::function<void()> done_;  // the caller's; empty: it was called
};

}  // namespace holdfast::stores
