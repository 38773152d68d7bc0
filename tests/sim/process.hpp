// A process of a client: it can be stopped (SIGSTOP), killed and started again.
#pragma once

#include <deque>
#include <string>

#include "core/types.hpp"
#include "sim/random.hpp"
#include "sim/timeline.hpp"
#include "sim/traffic.hpp"
#include "stores/waiting.hpp"

namespace holdfast::sim {

class process final : public stores::timers {
 public:
  process(timeline& time, std::string called, drifting_clock boot, drifting_clock wall,
          std::uint64_t seed)
      : name{std::move(called)}, random{seed, 12}, time_{time}, boot_{boot}, wall_{wall} {}

  const std::string name;
  random_stream random;
  // Tells its operations what happens to them.
  stores::event_caller events{*this};
  // What this life of it has sent.
  class traffic traffic;

  // The process in which something happens just now; null outside of any.
  [[nodiscard]] static process* current() noexcept { return current_; }
  // Lets something happen in it.
  template <class What>
  void enter(What what) {
    auto* const before = std::exchange(current_, this);
    what();
    current_ = before;
  }

  // CLOCK_BOOTTIME: goes on while the process is stopped.
  [[nodiscard]] core::time_point now() const noexcept {
    return core::time_point{core::duration{boot_.read(time_.now())}};
  }
  // When its clock read that, in the world's time.
  [[nodiscard]] instant when(core::time_point read) const noexcept {
    return boot_.when(read.time_since_epoch().count());
  }
  [[nodiscard]] std::int64_t wall_ms() const noexcept {
    return wall_.read(time_.now()) / millisecond;
  }
  [[nodiscard]] std::uint64_t wall_us() const noexcept {
    return static_cast<std::uint64_t>(wall_.read(time_.now()) / microsecond);
  }
  void step_wall(std::int64_t by) noexcept { wall_.step(by); }

  [[nodiscard]] unsigned life() const noexcept { return life_; }
  [[nodiscard]] bool runs() const noexcept { return runs_; }

  // Something reaches the process from outside: now, or when it is continued; never if it has died.
  template <class What>
  void reach(unsigned life, What what) {
    if (!runs_ || life != life_) return;
    if (stopped_) {
      backlog_.push_back(std::move(what));
    } else {
      enter(std::move(what));
    }
  }
  // A timer by its own clock.
  void at(core::time_point when, action what) override {
    if (when == core::never) return;
    time_.at(
        boot_.when(when.time_since_epoch().count()),
        [this, mine = life_, what = std::move(what)]() mutable { reach(mine, std::move(what)); });
  }

  void stop() noexcept { stopped_ = true; }
  void proceed() {
    if (!stopped_) return;
    stopped_ = false;
    // What happens here may kill or stop it again.
    while (!stopped_ && !backlog_.empty()) {
      const auto next = std::move(backlog_.front());
      backlog_.pop_front();
      enter(next);
    }
  }
  void kill() {
    runs_ = false;
    stopped_ = false;
    backlog_.clear();
    ++life_;
  }
  void start() {
    runs_ = true;
    traffic = {};
  }

 private:
  static thread_local process* current_;

  timeline& time_;
  drifting_clock boot_;
  drifting_clock wall_;
  unsigned life_ = 1;
  bool runs_ = true;
  bool stopped_ = false;
  std::deque<action> backlog_;
};

}  // namespace holdfast::sim
