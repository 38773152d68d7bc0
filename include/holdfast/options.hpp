// Every setting, its default and its bounds. Options are checked when they are handed over: a value
// that makes no sense throws holdfast::error (errc::invalid_argument) that names it. Durations may
// be of any type.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include <holdfast/duration.hpp>

namespace holdfast {

class observer;

// "Wait as long as it takes": for calls that take a wait. Such a wait still ends when stopped.
inline constexpr std::chrono::nanoseconds forever = std::chrono::nanoseconds::max();

// For client_options::unreachable_limit: an outage lasts as long as the call would wait anyway.
inline constexpr std::chrono::milliseconds as_long_as_waiting = std::chrono::milliseconds::max();

// How one lock is held.
struct lock_options {
  // How long the store keeps the lock if nothing is heard of its holder. A dead holder's lock is
  // free after at most this. 20 ms to 24 h; see docs/guarantees.md on choosing it.
  any_milliseconds ttl{30'000};

  // How long before the store could let go that lost() fires: the time the holder has to stop.
  // Default: a tenth of the TTL. At most half of it, so that renewal has room.
  std::optional<any_milliseconds> margin{};

  // Renew in the background at a third of the TTL. Without it the lease ends at its deadline.
  bool renew = true;

  // The longest a lease is held, renewed or not. Zero: no limit. When it is reached the lease is
  // lost, whatever its holder is doing; its lock is free at most one TTL later.
  any_milliseconds max_hold{0};

  // Renew only while the holder calls lease::progress() at least this often. Zero: always renew.
  any_milliseconds progress_within{0};

  // Shown with the holder, in status() for example. Any bytes, 256 at most.
  std::string label{};
};

// How a latch is kept at the store.
struct latch_options {
  // For how long the store remembers a latch, open or not, for which nobody counts or waits: a run
  // whose counts are further apart loses them, and one that begins sooner under the name of the run
  // before finds that one's counts. 1 s to 31 days; of several users' values the longest counts.
  any_milliseconds keep{std::chrono::hours{1}};
};

struct client_options {
  // What client.mutex(name) uses for its locks.
  lock_options lock{};

  // How long lock() and acquire() wait when they are given no time of their own.
  any_nanoseconds wait_limit{std::chrono::hours{1}};

  // One request and its reply, connecting included.
  any_milliseconds operation_timeout{2'000};

  // How long an acquisition goes on asking a store that does not answer before it fails with
  // errc::store_unreachable, counted from the first request that failed; as_long_as_waiting: until
  // the wait is over. (Waiting for another holder is not bounded by this.) No call tolerates more
  // than its own wait and 100 ms. A request that is under way then may take operation_timeout, and
  // taking back what may have been granted release_budget: a call ends by then.
  any_milliseconds unreachable_limit{5'000};

  // How long a release that nobody waits for (a destructor's, unlock()'s) is tried in the
  // background, and how long a destructor of the client waits for those.
  any_milliseconds release_budget{1'000};

  // Let a lock go from thread to thread of this client without asking the store each time, each
  // with a token of its own; within bounds, so that other processes get their turn.
  bool hand_over_here = true;

  // How much faster the store's clock may run than ours, in parts per thousand of the TTL.
  unsigned clock_drift_per_mille = 10;

  // Called for every event. Shared: it must outlive the client.
  std::shared_ptr<holdfast::observer> observer{};
};

}  // namespace holdfast
