// A lock by name.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

#include <holdfast/export.hpp>
#include <holdfast/lease.hpp>
#include <holdfast/options.hpp>
#include <holdfast/result.hpp>

namespace holdfast {

namespace detail {
class client_access;
class mutex_state;
}  // namespace detail

// A handle on a named lock; made by client::mutex(). Thread-safe. Cheap to copy: copies, and other
// handles on the same name from the same client, are the same lock. Keeps its client alive.
//
// Two ways to hold it. Leases (try_acquire, acquire) are objects and can go from thread to thread.
// The std Lockable members are for std::scoped_lock and friends: the lock then belongs to the
// thread that locked it, and current() is its lease. As with any mutex, a thread must not end
// without unlocking: the lock would be renewed for ever.
//
// Every acquisition that is cancelled or times out leaves nothing behind: what it may have got from
// the store is given back, or, if the store does not answer, is free after at most one TTL.
class HOLDFAST_API mutex {
 public:
  mutex(const mutex&) noexcept;
  mutex& operator=(const mutex&) noexcept;
  mutex(mutex&&) noexcept;
  mutex& operator=(mutex&&) noexcept;
  ~mutex();

  [[nodiscard]] const std::string& name() const noexcept;

  // Asks once. Empty: another holder has it. Throws holdfast::error when the store cannot say.
  [[nodiscard]] std::optional<lease> try_acquire(const std::stop_token& stop = {});

  // Waits up to `wait` (zero or less: asks once; holdfast::forever: until stopped).
  // Empty: not acquired in time, or stopped.
  [[nodiscard]] std::optional<lease> try_acquire(any_nanoseconds wait,
                                                 const std::stop_token& stop = {});

  // Waits as try_acquire() does, without `wait` up to the client's wait limit. Throws
  // errc::timed_out, errc::stopped, or what went wrong. Of timed_out, error::holder() says who has
  // the lock.
  [[nodiscard]] lease acquire(const std::stop_token& stop = {});
  [[nodiscard]] lease acquire(any_nanoseconds wait, const std::stop_token& stop = {});

  // The same without exceptions: what acquire() would throw is returned as a failure.
  [[nodiscard]] result<lease> acquire_result(const std::stop_token& stop = {});
  [[nodiscard]] result<lease> acquire_result(any_nanoseconds wait,
                                             const std::stop_token& stop = {});

  // Takes up a lease that detach() let go of, here or in another process, by extending it.
  // Throws errc::lease_lost if it has ended.
  [[nodiscard]] lease adopt(const lease_ticket& ticket);

  // --- std TimedLockable -----------------------------------------------------------------------
  // lock() waits like acquire(): until it has the lock, the client is stopped or its wait limit is
  // reached; the last two throw. It throws errc::would_deadlock if this thread holds the lock.
  void lock();
  bool try_lock();
  template <class Rep, class Period>
  bool try_lock_for(const std::chrono::duration<Rep, Period>& wait) {
    return try_lock_within(any_nanoseconds{wait});
  }
  template <class Clock, class Duration>
  bool try_lock_until(const std::chrono::time_point<Clock, Duration>& until) {
    return try_lock_for(until - Clock::now());
  }
  // Sends the release and does not wait for it. After a loss it does nothing: the lock of whoever
  // has it now is left alone. Unlocking what this thread does not hold is told to the observer.
  void unlock() noexcept;

  // The calling thread's lease while it holds this mutex through the members above, to see its
  // token and loss; nullptr otherwise. Valid until this thread unlocks.
  [[nodiscard]] lease* current() noexcept;

 private:
  friend class client;
  friend class detail::client_access;  // makes locks of other kinds, which behave like this one
  explicit mutex(std::shared_ptr<detail::mutex_state> state) noexcept;
  bool try_lock_within(std::chrono::nanoseconds wait);
  std::shared_ptr<detail::mutex_state> state_;
};

}  // namespace holdfast
