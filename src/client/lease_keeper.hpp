// Watches over held leases: sends renewals together, and sees to it that none ends unnoticed.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "client/keeper_threads.hpp"
#include "client/lease_state.hpp"
#include "stores/store.hpp"

namespace holdfast::detail {

// Thread-safe. Its threads are started with the first lease, and run no user's code.
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

  // errc::overloaded if the threads cannot be started: an unwatched lease is worse than none.
  [[nodiscard]] result<void> watch(lease_state& lease);
  void forget(lease_state& lease) noexcept;
  // Renews every lease now, or in a moment if it did so a moment ago: the store may have come back
  // without them.
  void renew_all();
  // The same for leases on locks of these names, those that have been renewed before. A lease is
  // not asked about more often than that.
  void renew_named(const std::vector<std::string>& names);
  // The lease with this id was lost, says the store.
  void on_pushed_loss(const core::owner_id& id, loss why);

 private:
  using entry = std::pair<core::time_point, lease_state*>;

  // Leases that are renewed by one request.
  struct renewal_batch {
    std::vector<std::shared_ptr<lease_state>> leases;
    core::time_point sent;
  };

  void look();
  [[nodiscard]] std::shared_ptr<lease_state> take_to_renew();
  [[nodiscard]] bool renew_next(stores::caller& by, std::function<void()> done);
  void watch_connection(int wake_fd);
  [[nodiscard]] std::vector<std::shared_ptr<lease_state>> take_due(core::time_point now);
  // Schedules what is next and tells of a loss; sending a renewal is up to the caller.
  void apply(const std::shared_ptr<lease_state>& lease, const lease_state::due& what);
  void apply(const renewal_batch& batch, const result<std::vector<stores::renewal>>& answers);
  void schedule(lease_state& lease, core::time_point when);
  void remember_renewed(lease_state& lease);
  void set_alarm(core::time_point when) noexcept;

  stores::store& store_;
  const core::duration operation_timeout_;
  const std::size_t batch_max_;
  const hooks tell_;

  std::mutex m_;
  // Protected by m_.
  std::set<entry> schedule_;
  // Of those in the schedule, the ones that have been renewed, by their lock's name.
  std::unordered_multimap<std::string_view, lease_state*> renewed_;
  std::deque<std::shared_ptr<lease_state>> to_renew_;
  core::time_point alarm_at_ = core::never;
  core::time_point all_due_at_{};  // when renew_all() had, or has, all of them renewed
  bool started_ = false;

  keeper_threads threads_;  // last, so that they end first
};

}  // namespace holdfast::detail
