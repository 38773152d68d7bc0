// One client, in one life of one process, as it is shipped, over the simulated network.
#pragma once

#include <array>
#include <functional>
#include <list>
#include <memory>
#include <stop_token>
#include <vector>

#include "client/acquisition.hpp"
#include "client/counting.hpp"
#include "client/lease_state.hpp"
#include "sim/lock_script.hpp"
#include "sim/network.hpp"
#include "sim/observed_store.hpp"
#include "sim/plan.hpp"
#include "stores/redlock/redlock_store.hpp"
#include "stores/store.hpp"

namespace holdfast::sim {

// A quorum's configuration, as all its clients have it.
[[nodiscard]] stores::redlock::redlock_config quorum_config(
    const std::vector<std::unique_ptr<node>>& nodes, const plan& the);

class client {
 public:
  using acquired = std::shared_ptr<detail::lease_state>;
  // With the lease, or why there is none.
  using on_done = std::function<void(acquired, const std::string& why)>;

  // `rule`: how its leases are held. `tell` needs no may_arrive.
  client(network& net, process& in, const std::vector<std::unique_ptr<node>>& nodes,
         const plan& the, const core::lease_rule& rule, store_observer tell);
  client(const client&) = delete;
  client& operator=(const client&) = delete;
  ~client();

  // `units`: of a lock that several may hold.
  void acquire(std::size_t lock, std::uint32_t units, core::duration wait, std::stop_token stop,
               on_done done);

  // At a latch. `wait`: until it is open, or for so long.
  using on_counted = std::function<void(const result<detail::counted>&)>;
  void count(std::size_t latch, core::counter_request what, std::optional<core::duration> wait,
             on_counted done);

  // True if something of this id was sent and never answered: it may still arrive.
  [[nodiscard]] bool may_arrive_late(const core::owner_id& id) const;
  // True if an attempt that was withdrawn for sure is never at any node again.
  [[nodiscard]] bool withdrawn_for_good(const core::owner_id& id) const;
  // As seen from outside: the store has the lock for this id.
  [[nodiscard]] bool has_at_store(std::size_t which, const core::owner_id& id);
  // Of a quorum: this client asked by this id, does not want the lock any more, and has seen to it
  // that every node hears so.
  [[nodiscard]] bool gave_back(std::size_t which, const core::owner_id& id) const;
  // Of a quorum: this was a waiter of its, and every node has heard, or will, that it is none now.
  [[nodiscard]] bool left_line(std::string_view waiter) const;

 private:
  [[nodiscard]] const stores::store_lock& lock(std::size_t which) const;

  const bool is_quorum_;
  process& in_;
  const unsigned life_;
  const std::vector<std::unique_ptr<node>>& nodes_;
  const std::shared_ptr<runtime::background> background_;
  const std::shared_ptr<detail::client_state> state_;
  const core::lock_kind kind_;
  const core::lease_rule rule_;
  std::array<std::shared_ptr<detail::lock_state>, locks_max> locks_;
  const core::counter_kind latch_kind_;
  std::list<std::shared_ptr<detail::acquisition>> under_way_;
  std::list<std::shared_ptr<detail::counting>> counting_;
};

}  // namespace holdfast::sim
