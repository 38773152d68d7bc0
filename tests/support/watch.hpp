// Waiting for what a client tells: a stop token that fires, an event, a moment.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include <holdfast/observer.hpp>

#include "runtime/clock.hpp"
#include "support/process.hpp"

namespace holdfast::test {

// Remembers when a stop token fired, and on which thread. Thread-safe.
class watched_token {
 public:
  explicit watched_token(std::stop_token token)
      : callback_{std::move(token), [this] { fired(); }} {}

  [[nodiscard]] bool wait(std::chrono::nanoseconds timeout = patience) {
    std::unique_lock lock{mutex_};
    return changed_.wait_for(lock, timeout, [&] { return at_.has_value(); });
  }
  [[nodiscard]] bool has_fired() {
    const std::lock_guard lock{mutex_};
    return at_.has_value();
  }
  // Only once it has fired.
  [[nodiscard]] core::time_point at() {
    const std::lock_guard lock{mutex_};
    return at_.value();
  }
  [[nodiscard]] std::thread::id on() {
    const std::lock_guard lock{mutex_};
    return on_;
  }

 private:
  void fired() {
    const std::lock_guard lock{mutex_};
    at_ = runtime::now();
    on_ = std::this_thread::get_id();
    changed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<core::time_point> at_;
  std::thread::id on_;
  std::stop_callback<std::function<void()>> callback_;  // last: it may fire while being made
};

// An event as it was told, its text kept.
struct seen_event {
  event::kind type;
  std::string lock;
  fencing_token token;
  std::chrono::nanoseconds duration;
  errc code;
  std::string detail;
  std::thread::id on;
};

// Keeps every event. Thread-safe.
class recorder final : public observer {
 public:
  void on_event(const event& e) noexcept override {
    const std::lock_guard lock{mutex_};
    seen_.push_back({e.type, std::string{e.lock}, e.token, e.duration, e.code,
                     std::string{e.detail}, std::this_thread::get_id()});
    changed_.notify_all();
  }

  [[nodiscard]] std::size_t count(event::kind type) const {
    const std::lock_guard lock{mutex_};
    return count_locked(type);
  }
  [[nodiscard]] bool await(event::kind type, std::size_t count = 1,
                           std::chrono::nanoseconds timeout = patience) const {
    std::unique_lock lock{mutex_};
    return changed_.wait_for(lock, timeout, [&] { return count_locked(type) >= count; });
  }
  [[nodiscard]] std::vector<seen_event> all() const {
    const std::lock_guard lock{mutex_};
    return seen_;
  }
  [[nodiscard]] std::optional<seen_event> first(event::kind type) const {
    const std::lock_guard lock{mutex_};
    for (const seen_event& e : seen_) {
      if (e.type == type) return e;
    }
    return std::nullopt;
  }

 private:
  [[nodiscard]] std::size_t count_locked(event::kind type) const {
    std::size_t n = 0;
    for (const seen_event& e : seen_)
      n += e.type == type ? 1 : 0;
    return n;
  }

  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::vector<seen_event> seen_;
};

// Time that must pass for a test to mean anything: until something *would* have happened. Never to
// wait for something that *will* happen.
inline void let_pass(std::chrono::nanoseconds how_long) {
  const auto until = runtime::now() + how_long;
  for (auto left = how_long; left.count() > 0; left = until - runtime::now()) {
    std::this_thread::sleep_for(left);
  }
}

}  // namespace holdfast::test
