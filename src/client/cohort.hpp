// Threads of one client that want the same lock: they queue here, and one of them asks the store.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <stop_token>

#include "core/cohort.hpp"
#include "core/settings.hpp"
#include "core/types.hpp"

namespace holdfast::detail {

class lease_state;

// How a mutex acquires: its options, checked.
struct lock_terms {
  core::lease_rule rule;
  std::string label;
};

// Thread-safe.
class cohort {
 public:
  enum class role {
    asks,     // ask the store; leave() when that came to nothing
    handed,   // here is the lease
    gave_up,  // until `until`, or stopped
  };
  struct place {
    role what = role::asks;
    std::shared_ptr<lease_state> lease{};
  };

  // Waits for its turn, and calls `waits` before it does. The first one here asks the store at
  // once.
  [[nodiscard]] place enter(const lock_terms& terms, core::time_point until,
                            const std::stop_token& stop, const std::stop_token& also,
                            const std::function<void()>& waits);

  // Whoever asks or holds for this cohort is done: the next one here asks.
  void leave();

  // Gives a held lock to the next one here, if there is one and its label is the same: what is
  // shown in the store is not changed by that. `make` makes its lease; nothing, and false, if not.
  bool pass(const std::string& label,
            const std::function<std::shared_ptr<lease_state>(const lock_terms&)>& make);

  [[nodiscard]] std::size_t waiting();

 private:
  struct waiter {
    const lock_terms* terms;
    place got{role::gave_up, nullptr};
    bool done = false;
    bool stopped = false;
    std::condition_variable wake;
  };

  std::mutex m_;
  // Protected by m_.
  std::deque<waiter*> queue_;
  bool taken_ = false;  // somebody here asks or holds
};

}  // namespace holdfast::detail
