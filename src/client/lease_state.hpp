// A held lock behind the public lease: the machine, and what its events need.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>

#include <holdfast/observer.hpp>

#include "client/lock_state.hpp"
#include "core/lease_machine.hpp"
#include "runtime/fork.hpp"
#include "stores/store.hpp"

namespace holdfast::detail {

class client_state;

// Thread-safe. The keeper refers to it while it is watched; only its user keeps the client alive.
class lease_state : public std::enable_shared_from_this<lease_state> {
 public:
  lease_state(std::shared_ptr<client_state> owner, std::shared_ptr<lock_state> on,
              const core::owner_id& as, const core::grant& granted, const lock_terms& terms,
              core::time_point held_from, std::optional<core::cohort_turn> turn);

  const std::shared_ptr<lock_state> lock;
  const core::owner_id id;
  const fencing_token token;
  const core::time_point granted_at;
  const std::string label;

  // In a child of the process that acquired it nothing here may be called: not ours, and its
  // mutex may be held by a thread that the child does not have.
  [[nodiscard]] bool forked() const noexcept { return generation_ != runtime::fork_generation(); }

  // --- its user ---
  [[nodiscard]] bool held();
  [[nodiscard]] core::duration remaining();
  // Until when it can be relied on; long ago, once it is over.
  [[nodiscard]] core::time_point relied_on_until();
  [[nodiscard]] std::stop_token lost();
  [[nodiscard]] loss why_lost();
  using on_done = std::function<void(result<void>)>;
  void renew(stores::caller& by, on_done done);
  void progress();
  [[nodiscard]] result<fencing_token> count(std::string_view counter);
  // Of a shared lock.
  void downgrade(stores::caller& by, on_done done);
  void release(stores::caller& by, on_done done);
  [[nodiscard]] result<lease_ticket> detach();
  // The user's handle goes: gives the lock back without waiting. Nothing after a fork.
  void abandon() noexcept;

  // --- the keeper ---
  struct due {
    loss lost = loss::none;
    bool renew = false;
    core::time_point next = core::never;
  };
  // What is to be done at `now`; renewals due by `due_by` are taken along.
  [[nodiscard]] due on_due(core::time_point due_by, core::time_point now);
  [[nodiscard]] due on_renewed(const stores::renewal& answer, core::time_point now);
  [[nodiscard]] due on_renewal_failed(core::time_point now);
  // A renewal is due at `when`, if not before; says when the next event is.
  [[nodiscard]] core::time_point hurry(core::time_point when);
  [[nodiscard]] loss on_pushed_loss(loss why);
  [[nodiscard]] core::time_point next_event();
  [[nodiscard]] core::duration ttl() const noexcept { return ttl_; }
  // After a loss by our own clock, when the store could have let go: a store with sessions goes on
  // keeping the lock as long as the session lives, so it is told.
  [[nodiscard]] core::time_point expiry();
  void release_leftover(core::time_point give_up);
  // Runs the stop callbacks: on a background thread only.
  void fire();
  // It does not hold for the other threads here any more: they must see for themselves.
  void leave_cohort();

  // Where it stands in the keeper's schedule, and whether it may; protected by the keeper's mutex.
  core::time_point scheduled_at = core::never;
  bool forgotten = false;
  bool known_as_renewed = false;
  core::time_point doubted_at{};  // when it had, or has, to be renewed because of a change

 private:
  [[nodiscard]] std::shared_ptr<client_state> client();
  // Tells the loss, if one happened; never under m_.
  void announce(loss why);
  [[nodiscard]] bool end();
  [[nodiscard]] bool take_leftover();
  // For a lease that has ended. True if another caller of this client has it now; false: the store
  // must be told.
  [[nodiscard]] bool pass_on(client_state& owner);
  [[nodiscard]] event released(core::time_point now) const;
  using on_store = std::function<void(result<stores::renewal>)>;
  // `ask` is told until when, and calls back with what the store says.
  void extend(const std::function<void(core::time_point, on_store)>& ask, on_done done);
  [[nodiscard]] result<void> renewed_by_hand(client_state& owner, result<stores::renewal> got);
  [[nodiscard]] result<void> given_back(client_state& owner, core::time_point since,
                                        result<stores::removal> said);
  [[nodiscard]] static failure lost_failure(loss why);
  [[nodiscard]] failure over_failure();

  const std::uint64_t generation_;
  const core::duration ttl_;
  std::mutex m_;
  // Protected by m_.
  std::shared_ptr<client_state> client_;
  core::lease_machine machine_;
  // Held for the threads of this client that queue for it; nothing once it has left them.
  std::optional<core::cohort_turn> turn_;
  bool left_nothing_ = false;  // after a loss: what the store may still have has been released
  std::optional<std::stop_source> lost_;  // made when first asked for: most leases never are
};

}  // namespace holdfast::detail
