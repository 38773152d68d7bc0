// Threads of one client that want the same lock: they queue here, and one of them asks the store.
#pragma once

#include <array>
#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>

#include <holdfast/result.hpp>

#include "core/adaptive_spin.hpp"
#include "core/cohort.hpp"
#include "core/lock_kind.hpp"
#include "core/settings.hpp"
#include "core/types.hpp"
#include "runtime/parker.hpp"
#include "stores/pause.hpp"

namespace holdfast::detail {

class lease_state;

// How a mutex acquires: its options, checked.
struct lock_terms {
  core::lease_rule rule;
  std::string label{};
  std::uint32_t units = core::whole;  // of a lock that several may hold
};

// Thread-safe.
class cohort {
 public:
  enum class role {
    asks,     // ask the store; leave() when that came to nothing
    handed,   // here is the lease
    gave_up,  // until `until`, or stopped
    failed,   // the one who asked could not, and this is why
  };
  struct place {
    role what = role::asks;
    std::shared_ptr<lease_state> lease{};
    std::optional<failure> why{};
    // gave_up: whom the one that asks has met at the store; nothing if a thread of ours has it.
    std::optional<core::busy> met{};
  };

  using on_place = std::function<void(place)>;

  // Queues, and calls `done` when it is this caller's turn, or when the wait has ended before. The
  // first one here asks the store at once: `done` was called, and null is returned. All others get
  // the wait, to hand it to their caller. `terms` must outlive it.
  [[nodiscard]] std::shared_ptr<stores::pause> enter(const lock_terms& terms,
                                                     core::time_point until, on_place done);

  // The client goes: nobody waits here any more.
  void close();

  // What the store told the one that asks: another holder has it, or, with nothing, none has.
  void on_met(std::optional<core::busy> other);

  // The one that asks or holds for this cohort is done: the next one here asks.
  void leave();
  // The same for one who could not reach the store. Those who have waited for `limit` are told so:
  // each of them finding out by itself, one after the other, would take the limit every time.
  void leave(const failure& why, core::duration limit);

  // Gives a held lock to the next one here, if there is one and its label is the same: what is
  // shown in the store is not changed by that. `make` makes its lease; nothing, and false, if not.
  bool pass(const std::string& label,
            const std::function<std::shared_ptr<lease_state>(const lock_terms&)>& make);

  [[nodiscard]] std::size_t waiting();

 private:
  class waiter;
  using waiters = std::deque<std::shared_ptr<waiter>>;

  // All under m_.
  [[nodiscard]] bool comes_back(core::time_point now) const;
  // What is returned is to be ended when m_ is unlocked.
  [[nodiscard]] static std::shared_ptr<waiter> serve(std::shared_ptr<waiter> one, place what);
  [[nodiscard]] static std::shared_ptr<waiter> serve_first(waiters& from, place what);
  void poll(const waiter& mine);
  [[nodiscard]] place leave_queue(waiter& mine);

  std::mutex m_;
  // Protected by m_.
  waiters queue_;
  // Who had the lock a moment ago and is back: awake, so served first while turns are short. It
  // saves a sleep and a wake-up for each hand. With the next turn they stand behind all others.
  waiters back_again_;
  std::array<const runtime::parker*, 2> had_it_{};  // the last two of this turn
  core::time_point turn_began_{};
  bool taken_ = false;  // one of us asks or holds
  bool closed_ = false;
  std::optional<core::busy> met_;
  core::adaptive_spin polling_;
};

}  // namespace holdfast::detail
