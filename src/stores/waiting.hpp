// How a caller waits for what a store does: on a thread of its own, or told by events.
//
// A store never blocks in a call. What takes time is begun, with a function that is called once
// when it is over, and a `waiting` that is handed to the caller. Whether a thread then does the I/O
// itself, or an event loop does it for thousands, is the caller's choice and nobody else's.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "core/types.hpp"

namespace holdfast::stores {

class timers {
 public:
  timers() = default;
  timers(const timers&) = delete;
  timers& operator=(const timers&) = delete;
  virtual ~timers() = default;
  // From any thread. Calls `what` at `when`, in its turn with everything else that happens to the
  // caller: never before at() returns.
  virtual void at(core::time_point when, std::function<void()> what) = 0;
};

// Something that is under way for one caller, and ends: by an answer, a message, or the time.
class waiting {
 public:
  waiting() = default;
  waiting(const waiting&) = delete;
  waiting& operator=(const waiting&) = delete;
  virtual ~waiting() = default;

  // Does the I/O on the calling thread, until it is over and has said so.
  virtual void wait() = 0;
  // The I/O is done elsewhere, in turn with `by`, which tells the moments at which to look at the
  // clock.
  virtual void watch(timers& by) = 0;
};

class caller {
 public:
  caller() = default;
  caller(const caller&) = delete;
  caller& operator=(const caller&) = delete;
  virtual ~caller() = default;
  // Called by the store for each step that takes time, before it returns.
  virtual void wait_for(std::shared_ptr<waiting> what) = 0;
  // From any thread: calls `what` in turn with everything else that happens to the caller. For a
  // thread that waits this is at once: what it waits for may be ended by any thread.
  virtual void in_turn(std::function<void()> what) = 0;
};

// A thread that waits. Not thread-safe.
class blocking_caller final : public caller {
 public:
  void wait_for(std::shared_ptr<waiting> what) override { under_way_.push_back(std::move(what)); }
  void in_turn(std::function<void()> what) override { what(); }
  // Returns when nothing is under way any more.
  void run() {
    while (!under_way_.empty()) {
      const auto next = std::move(under_way_.front());
      under_way_.erase(under_way_.begin());
      next->wait();
    }
  }

 private:
  std::vector<std::shared_ptr<waiting>> under_way_;  // few, or one
};

// A caller that is told by events. Not thread-safe.
class event_caller final : public caller {
 public:
  explicit event_caller(timers& by) : by_{by} {}
  void wait_for(std::shared_ptr<waiting> what) override { what->watch(by_); }
  void in_turn(std::function<void()> what) override { by_.at(core::time_point{}, std::move(what)); }

 private:
  timers& by_;
};

// Waits on this thread for what `begin(caller, done)` begins, and gives what `done` was told.
template <class Result, class Begin>
[[nodiscard]] Result wait_here(Begin begin) {
  blocking_caller here;
  std::optional<Result> told;
  begin(here, [&told](Result got) { told.emplace(std::move(got)); });
  here.run();
  return std::move(*told);
}

}  // namespace holdfast::stores
