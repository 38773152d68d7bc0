// The threads that a lease_keeper needs: one that watches the clock, one that renews.
#pragma once

#include <functional>
#include <memory>

#include "core/types.hpp"
#include "stores/waiting.hpp"

namespace holdfast::detail {

// Thread-safe. The first thread only looks at the clock and never waits for anything else, so that
// a loss is seen in time whatever the store does. Both sleep while there is nothing to do. The
// simulator has one of its own, without threads.
class keeper_threads {
 public:
  // What the threads do.
  struct duties {
    // It is the time of the alarm.
    std::function<void()> look;
    // Begins to send what is to be renewed, one request. False: there is nothing.
    std::function<bool(stores::caller& by, std::function<void()> done)> renew;
    // Returns when the descriptor can be read, or after it has seen to a reason to renew.
    std::function<void(int wake_fd)> watch_connection;
  };

  explicit keeper_threads(duties what);
  keeper_threads(const keeper_threads&) = delete;
  keeper_threads& operator=(const keeper_threads&) = delete;
  // Waits for what is under way; nothing is called afterwards.
  ~keeper_threads();

  // Starts them, if they do not run yet. False: they cannot be started; it may be tried again.
  [[nodiscard]] bool start();
  void set_alarm(core::time_point when) noexcept;
  // There is something to renew.
  void wake_renewer() noexcept;

 private:
  struct running;
  const std::shared_ptr<running> running_;
};

}  // namespace holdfast::detail
