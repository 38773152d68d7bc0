// The read/write lock that is shared with Java programs that use Redisson.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

#include <holdfast/client.hpp>
#include <holdfast/export.hpp>
#include <holdfast/lease.hpp>
#include <holdfast/mutex.hpp>
#include <holdfast/options.hpp>
#include <holdfast/redisson/leasing.hpp>
#include <holdfast/result.hpp>
#include <holdfast/status.hpp>

namespace holdfast::redisson {

// One side of an rread_write_lock, with the members of rlock: Java's readLock() or writeLock().
// Thread-safe, cheap to copy. Keeps its client alive.
class HOLDFAST_API rread_write_side : public leasing {
 public:
  // --- std TimedLockable, re-entrant by thread: what rread_write_lock says of them --------------
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
  void unlock() noexcept;

  // How often the calling thread has locked this side and not unlocked.
  [[nodiscard]] std::size_t holds() const noexcept;

 private:
  friend class rread_write_lock;
  enum class side { reads, writes };
  rread_write_side(mutex lock, side which) noexcept : leasing{std::move(lock)}, side_{which} {}
  bool try_lock_within(std::chrono::nanoseconds wait);
  [[nodiscard]] bool take_again();
  void put(lease first);

  side side_;
};

// The lock that Java's `redisson.getReadWriteLock(name)` is, on the same server: any number of
// readers of either language, or one writer. What rlock says holds here, too: any order of waiters,
// no tokens, the same stores.
//
//   holdfast::redisson::rread_write_lock config{client, "config"};
//   { std::shared_lock reading{config}; show(); }          // readLock(): std::unique_lock to write
//   if (auto writing = config.write_lock().try_acquire(500ms)) { … }  // a lease, with lost()
//
// What to know:
// - Writers are not preferred: readers that come one after the other keep them out, as in Java.
// - The TTL must not be longer than the watchdog's time of Java programs that read as well (30 s on
//   both sides, by default): their watchdog sets the holds of all readers to that.
// - At most 10,000 of ours read at a time; the rest wait.
class HOLDFAST_API rread_write_lock {
 public:
  rread_write_lock(client& on, std::string_view name);
  rread_write_lock(client& on, std::string_view name, const lock_options& options);

  [[nodiscard]] const std::string& name() const noexcept { return writing_.name(); }

  [[nodiscard]] rread_write_side read_lock() const { return reading_; }
  [[nodiscard]] rread_write_side write_lock() const { return writing_; }

  // Makes a writer's lease a reader's, in one step, and tells readers that wait. As
  // shared_mutex::downgrade().
  [[nodiscard]] result<void> downgrade(lease& held);

  // --- std SharedTimedMutex, re-entrant by thread ------------------------------------------------
  // Holds are counted in this process: only a thread's first and last reach the server, and it has
  // one lease for all. If that was lost, locking throws errc::lease_lost until the thread has
  // unlocked as often as it had locked.
  //
  // A thread that writes may read as well, as in Java. Its last unlock() while it still reads makes
  // it a reader: that waits for the server's answer, and if there is none the thread goes on
  // keeping others out. A thread that only reads must not ask to write, for it would wait for
  // itself: lock() throws errc::would_deadlock, and the others say false.
  void lock() { writing_.lock(); }
  bool try_lock() { return writing_.try_lock(); }
  template <class Rep, class Period>
  bool try_lock_for(const std::chrono::duration<Rep, Period>& wait) {
    return writing_.try_lock_for(wait);
  }
  template <class Clock, class Duration>
  bool try_lock_until(const std::chrono::time_point<Clock, Duration>& until) {
    return writing_.try_lock_until(until);
  }
  void unlock() noexcept { writing_.unlock(); }

  void lock_shared() { reading_.lock(); }
  bool try_lock_shared() { return reading_.try_lock(); }
  template <class Rep, class Period>
  bool try_lock_shared_for(const std::chrono::duration<Rep, Period>& wait) {
    return reading_.try_lock_for(wait);
  }
  template <class Clock, class Duration>
  bool try_lock_shared_until(const std::chrono::time_point<Clock, Duration>& until) {
    return reading_.try_lock_until(until);
  }
  void unlock_shared() noexcept { reading_.unlock(); }

  // The calling thread's lease while it holds the lock by these members, to see its loss; else
  // nullptr.
  [[nodiscard]] lease* current() noexcept;

  // Who has it: of Java's holders, `value` is the field, "<client's uuid>:<thread id>", with
  // ":write" if it writes.
  [[nodiscard]] lock_status status();
  // Takes the lock from all that have it, either way. False: nobody had it. Its holders learn of it
  // at their next renewals: exclusion is in your hands.
  bool force_unlock();

 private:
  explicit rread_write_lock(const mutex& writing);
  rread_write_side writing_;
  rread_write_side reading_;
};

}  // namespace holdfast::redisson
