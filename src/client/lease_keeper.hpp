// Watches over held leases: sends renewals together, and sees to it that none ends unnoticed.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "client/lease_state.hpp"
#include "runtime/fd.hpp"
#include "runtime/wake_fd.hpp"
#include "stores/store.hpp"

namespace holdfast::detail {

// Thread-safe. Two threads, started with the first lease: one only looks at the clock and never
// waits for anything else, so that a loss is seen in time whatever the store does; the other
// renews. Neither runs a user's code. Both sleep while there is nothing to do.
class lease_keeper {
 public:
  struct hooks {
    std::function<void(const std::shared_ptr<lease_state>&, loss)> lost;
    std::function<void(const std::shared_ptr<lease_state>&, core::duration took)> renewed;
    std::function<void(const std::shared_ptr<lease_state>&, const failure&)> renewal_failed;
    std::function<void()> renewal_call;
  };

  lease_keeper(stores::store& store, core::duration operation_timeout, hooks tell);
  lease_keeper(const lease_keeper&) = delete;
  lease_keeper& operator=(const lease_keeper&) = delete;
  ~lease_keeper();

  // errc::overloaded if the threads cannot be started: an unwatched lease is worse than none.
  [[nodiscard]] result<void> watch(lease_state& lease);
  void forget(lease_state& lease) noexcept;
  // Renews every lease now, or in a moment if it did so a moment ago: the store may have come back
  // without them.
  void renew_all();
  // The lease with this id was lost, says the store.
  void on_pushed_loss(const core::owner_id& id, loss why);

 private:
  using entry = std::pair<core::time_point, lease_state*>;

  void keep_time();
  void keep_renewing();
  [[nodiscard]] std::vector<std::shared_ptr<lease_state>> take_due(core::time_point now);
  // Schedules what is next and tells of a loss; sending a renewal is up to the caller.
  void apply(const std::shared_ptr<lease_state>& lease, const lease_state::due& what);
  void renew(const std::vector<std::shared_ptr<lease_state>>& batch);
  void schedule(lease_state& lease, core::time_point when);
  void set_alarm(core::time_point when) noexcept;

  stores::store& store_;
  const core::duration operation_timeout_;
  const std::size_t batch_max_;
  const hooks tell_;
  const runtime::wake_fd work_;  // wakes the thread that renews
  runtime::unique_fd alarm_;     // a timer on CLOCK_BOOTTIME: rings after a suspend, too

  std::mutex m_;
  // Protected by m_.
  std::set<entry> schedule_;
  std::deque<std::shared_ptr<lease_state>> to_renew_;
  core::time_point alarm_at_ = core::never;
  core::time_point all_due_at_{};  // when renew_all() had, or has, all of them renewed
  bool started_ = false;
  bool stopping_ = false;
  std::thread timer_;
  std::thread renewer_;
};

}  // namespace holdfast::detail
