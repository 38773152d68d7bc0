// Virtual time: what happens next, and the clocks that run along it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

namespace holdfast::sim {

// Nanoseconds since the world began, as nobody inside it can read them.
using instant = std::int64_t;
inline constexpr instant microsecond = 1000;
inline constexpr instant millisecond = 1000 * microsecond;
inline constexpr instant second = 1000 * millisecond;

using action = std::function<void()>;

// Events at one instant happen in the order in which they were planned.
class timeline {
 public:
  [[nodiscard]] instant now() const noexcept { return now_; }

  void at(instant when, action what) {
    if (free_.empty()) {
      free_.push_back(actions_.size());
      actions_.emplace_back();
    }
    const auto place = free_.back();
    free_.pop_back();
    actions_[place] = std::move(what);
    events_.push_back({std::max(when, now_), planned_++, place});
    std::push_heap(events_.begin(), events_.end(), later);
  }

  // Nothing happens any more. What events hold may plan others when it goes.
  void end() {
    while (!events_.empty()) {
      events_.clear();
      const auto dropped = std::exchange(actions_, {});
      free_.clear();
    }
  }

  // Lets the next event happen, if it comes by `until`; otherwise time is `until`.
  bool step(instant until) {
    if (events_.empty() || events_.front().when > until) {
      now_ = std::max(now_, until);
      return false;
    }
    std::pop_heap(events_.begin(), events_.end(), later);
    const auto next = events_.back();
    events_.pop_back();
    now_ = next.when;
    const auto what = std::exchange(actions_[next.place], {});
    free_.push_back(next.place);
    what();
    return true;
  }

 private:
  struct event {
    instant when;
    std::uint64_t order;
    std::size_t place;  // in actions_, which would be slow to sort
  };
  static bool later(const event& a, const event& b) noexcept {
    return a.when != b.when ? a.when > b.when : a.order > b.order;
  }
  std::vector<event> events_;  // a heap
  std::vector<action> actions_;
  std::vector<std::size_t> free_;  // places in actions_
  std::uint64_t planned_ = 0;
  instant now_ = 0;
};

// A clock that runs a little fast or slow, and can be stepped. Readings are nanoseconds.
class drifting_clock {
 public:
  drifting_clock(std::int64_t reading, std::int64_t parts_per_million) noexcept
      : reading_{reading}, ppm_{parts_per_million} {}

  [[nodiscard]] std::int64_t read(instant now) const noexcept {
    return reading_ + now + now / 1'000'000 * ppm_ + now % 1'000'000 * ppm_ / 1'000'000;
  }
  void step(std::int64_t by) noexcept { reading_ += by; }
  // The first instant at which it reads `reading` or more.
  [[nodiscard]] instant when(std::int64_t reading) const noexcept {
    const auto left = reading - reading_;
    if (ppm_ == 0) return std::max<instant>(0, left);
    // Within a nanosecond or two; then it is walked.
    const auto speed = 1 + static_cast<double>(ppm_) / 1'000'000;
    auto guess = std::max<instant>(0, static_cast<instant>(static_cast<double>(left) / speed));
    while (guess > 0 && read(guess - 1) >= reading)
      --guess;
    while (read(guess) < reading)
      ++guess;
    return guess;
  }

 private:
  std::int64_t reading_;
  std::int64_t ppm_;
};

}  // namespace holdfast::sim
