// Waiting for a moment, or for a sign from elsewhere in the process.
#pragma once

#include <atomic>
#include <functional>
#include <memory>

#include "core/types.hpp"
#include "runtime/parker.hpp"
#include "stores/waiting.hpp"

namespace holdfast::stores {

// A wait that others may end.
class interruptible : public waiting {
 public:
  // From any thread, at any time: the wait is over now, if it is not yet.
  virtual void end() = 0;
};

// Time that passes for one caller, on its own or as part of a wait for something else. Made on the
// thread that waits for it, if one does.
class pause : public interruptible, public std::enable_shared_from_this<pause> {
 public:
  // Calls `done` at `until`, or after end().
  pause(core::time_point until, std::function<void()> done);

  void wait() override;
  void watch(timers& by) override;
  void end() override;

  // Which thread waits, if one does.
  [[nodiscard]] const runtime::parker* thread() const noexcept { return sleeper_.get(); }

 protected:
  // On the caller's turn: the wait is over.
  void finish();

 private:
  const core::time_point until_;
  const std::shared_ptr<runtime::parker> sleeper_ = runtime::parker::of_this_thread();
  std::atomic<bool> ended_{false};
  std::atomic<timers*> by_{nullptr};
  std::function<void()> done_;  // the caller's; empty: it was called
};

}  // namespace holdfast::stores
