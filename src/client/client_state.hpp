// Everything one client has, and the acquisition that ties it together.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>

#include <holdfast/client.hpp>

#include "client/event_gate.hpp"
#include "client/lease_keeper.hpp"
#include "client/lease_state.hpp"
#include "client/lock_state.hpp"
#include "core/acquire_machine.hpp"
#include "core/settings.hpp"
#include "core/weak_registry.hpp"
#include "runtime/background.hpp"
#include "runtime/fork.hpp"
#include "stores/store.hpp"

namespace holdfast::detail {

// Stop callbacks that block keep a thread each; with this many blocked, further losses wait.
inline constexpr std::size_t loss_threads_max = 16;
// One, so that an observer sees events in order.
inline constexpr std::size_t event_threads_max = 1;
inline constexpr std::size_t store_threads_max = 4;

class mutex_state;

// Plain counters, as holdfast::counters but atomic.
struct atomic_counters {
  std::atomic<std::uint64_t> acquisitions{0}, waits{0}, waiting_now{0}, held_now{0}, releases{0},
      renewals{0}, renewal_calls{0}, renewal_failures{0}, losses{0}, failures{0},
      unknown_outcomes{0}, reconnects{0}, clock_steps{0}, events_dropped{0};

  [[nodiscard]] counters read() const noexcept;
};

// Thread-safe. Shared by the client, its mutexes and its leases.
class client_state : public std::enable_shared_from_this<client_state> {
 public:
  // A client that was copied by fork() is never destroyed in the child: its threads are not there
  // to be joined and its mutexes may be held by them.
  [[nodiscard]] static std::shared_ptr<client_state> make(
      std::unique_ptr<stores::store> store, std::shared_ptr<runtime::background> store_work,
      client_options options);
  client_state(const client_state&) = delete;
  client_state& operator=(const client_state&) = delete;
  ~client_state();

  [[nodiscard]] bool forked() const noexcept { return generation_ != runtime::fork_generation(); }
  // errc::forked in a forked child, for the first line of everything.
  [[nodiscard]] result<void> usable() const;

  [[nodiscard]] result<std::shared_ptr<lock_state>> open(std::string_view name,
                                                         const core::lock_kind& kind = {});

  // What an acquisition (client/acquisition.hpp) comes to: a lease, or nothing, and no failure.
  struct not_acquired {
    enum class cause {
      busy,            // another holder had the lock to the end of the wait: `met`
      behind_our_own,  // another thread of this client had it, or asked before this one
      late,            // the grant came too late to be relied on
      stopped,
    };
    cause why{};
    std::optional<core::busy> met{};
  };
  using acquired = tl::expected<std::shared_ptr<lease_state>, not_acquired>;
  // What a store granted, as a lease that is watched. `for_cohort`: it may be passed on here.
  [[nodiscard]] result<std::shared_ptr<lease_state>> hold(const std::shared_ptr<lock_state>& lock,
                                                          const core::owner_id& id,
                                                          const core::grant& granted,
                                                          const lock_terms& terms, bool for_cohort);
  using on_adopted = std::function<void(result<std::shared_ptr<lease_state>>)>;
  void adopt(std::shared_ptr<const mutex_state> with, const lease_ticket& ticket,
             stores::caller& by, on_adopted done);

  // A lease is over here: another thread of ours may have it, or ask for the lock.
  [[nodiscard]] bool pass_on(lease_state& from, const core::lease_machine& machine,
                             core::cohort_turn turn);

  void request_stop() noexcept;
  [[nodiscard]] std::stop_token stopping() const noexcept { return stop_.get_token(); }

  // On the caller's thread, or, for what happens on threads of ours, in the background.
  void tell(const event& e) const noexcept;
  void tell_later(event::kind type, const std::shared_ptr<lease_state>& lease, core::duration took,
                  errc code, std::string detail);
  void on_lost(const std::shared_ptr<lease_state>& lease, loss why);
  [[nodiscard]] failure record_failure(const std::string& lock, failure why);

  const client_options options;
  mutable atomic_counters counts;

  [[nodiscard]] stores::store& store() noexcept { return *store_; }
  [[nodiscard]] lease_keeper& watch() noexcept { return keeper_; }

 private:
  client_state(std::unique_ptr<stores::store> store,
               std::shared_ptr<runtime::background> store_work, client_options options_given);
  [[nodiscard]] result<std::shared_ptr<lease_state>> adopted(const mutex_state& with,
                                                             const core::owner_id& id,
                                                             fencing_token expected,
                                                             result<stores::renewal> got);
  void renew_early(lease_state& fresh);
  [[nodiscard]] lease_keeper::hooks keeper_hooks();
  [[nodiscard]] stores::store_events store_hooks();

  const std::uint64_t generation_;
  std::stop_source stop_;
  // Three pools, so that a loss never waits behind an observer or a release, nor they behind it.
  runtime::background losses_;
  runtime::background events_;
  const std::shared_ptr<runtime::background> store_work_;
  const std::shared_ptr<event_gate> gate_ = std::make_shared<event_gate>();
  std::unique_ptr<stores::store> store_;
  lease_keeper keeper_;

  std::mutex m_;
  core::weak_registry<lock_state> locks_;  // protected by m_
};

}  // namespace holdfast::detail
