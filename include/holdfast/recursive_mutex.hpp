// A lock by name that its owner may take again.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

#include <holdfast/duration.hpp>
#include <holdfast/export.hpp>
#include <holdfast/lease.hpp>
#include <holdfast/mutex.hpp>

namespace holdfast {

// An owner that is not a thread: a task that goes from thread to thread, a coroutine, a request.
// A value type: copies are the same owner, each one that is made is another.
class HOLDFAST_API lock_owner {
 public:
  lock_owner() noexcept;
  friend bool operator==(const lock_owner&, const lock_owner&) noexcept = default;

 private:
  friend class recursive_mutex;
  std::uint64_t number_;
};

// A handle on a named lock, made by client::recursive_mutex(). Thread-safe, cheap to copy; handles
// on the same name from the same client are the same lock. Sound on every store: to the store, and
// to every other client, it is the mutex of that name.
//
// Taking it again is counted in this process and costs no network; the last unlock() gives it back.
// The owner is the thread, as in std, or, for a handle made by owned_by(), that owner. Calls of one
// owner follow one another, as those of a thread do.
//
//   std::scoped_lock outer{orders};
//   {
//     std::scoped_lock inner{orders};        // the same lease, no request
//   }
//   db.write(row, orders.current()->token());
//
// A mutex and a recursive_mutex of one name exclude each other, in one thread as well: use one of
// them for a name.
class HOLDFAST_API recursive_mutex {
 public:
  // More is taken for a loop that never ends: errc::overloaded.
  static constexpr std::size_t depth_max = 1'000'000;

  [[nodiscard]] const std::string& name() const noexcept { return once_.name(); }

  // The same lock for this owner instead of for whichever thread calls.
  [[nodiscard]] recursive_mutex owned_by(const lock_owner& owner) const;

  // lock() waits like mutex::lock(). If the owner has it already, these count, and that is all;
  // they throw errc::lease_lost if it was lost since: unlock to the outermost level first, because
  // work at the outer levels goes by the lease that is gone.
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
  // The last one sends the release and does not wait for it. After a loss it leaves the lock of
  // its next holder alone. Unlocking what the owner does not hold is told to the observer.
  void unlock() noexcept;

  // The owner's lease while it holds this lock, to see its token and loss; nullptr otherwise. Valid
  // until the owner's last unlock().
  [[nodiscard]] lease* current() noexcept;
  // How often the owner has to unlock.
  [[nodiscard]] std::size_t depth() const noexcept;

 private:
  friend class client;
  friend class detail::client_access;
  explicit recursive_mutex(mutex once) noexcept : once_{std::move(once)} {}
  [[nodiscard]] bool try_lock_within(std::chrono::nanoseconds wait);
  [[nodiscard]] bool take_again();

  mutex once_;
  std::uint64_t owner_ = 0;  // 0: the calling thread
};

}  // namespace holdfast
