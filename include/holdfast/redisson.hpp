// Locks that are shared with Java programs that use Redisson.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

#include <holdfast/client.hpp>
#include <holdfast/export.hpp>
#include <holdfast/lease.hpp>
#include <holdfast/mutex.hpp>
#include <holdfast/options.hpp>
#include <holdfast/recursive_mutex.hpp>
#include <holdfast/redisson/counters.hpp>
#include <holdfast/redisson/leasing.hpp>
#include <holdfast/result.hpp>
#include <holdfast/status.hpp>

namespace holdfast::redisson {

// The lock that Java's `redisson.getLock(name)` is, on the same server: either excludes the other,
// and a release on either side wakes a waiter on the other at once. Needs redis://, unix: or
// local:; elsewhere making one throws errc::unsupported. The client's `prefix` is part of the name.
//
// Thread-safe. Cheap to copy: copies, and other handles on the same name from the same client, are
// the same lock. Keeps its client alive.
//
//   holdfast::client client{"redis://127.0.0.1:6379"};
//   holdfast::redisson::rlock orders{client, "orders"};
//   { std::scoped_lock guard{orders}; ship(); }            // re-entrant, as in Java
//   if (auto lease = orders.try_acquire(500ms)) { … }      // a lease, with lost()
//
// What differs from holdfast::mutex:
// - Re-entrant by thread through the std Lockable members. Holds are counted in this process: only
//   the first lock() and the last unlock() reach the server.
// - No queue: of those who wait, whoever asks first has it, as with Redisson. Threads of
//   this client do not hand it to each other either.
// - No tokens: lease.token() is 0, so nothing can tell a late write of a former holder. A resource
//   that must is a case for rfenced_lock, or for holdfast::mutex, where no Java program shares it.
// - It is another lock than the mutex of the same name; a key that holds one of them is refused by
//   the other with errc::wrong_type.
//
// The default TTL of 30 s, renewed at a third, is Redisson's watchdog.
class HOLDFAST_API rlock : public leasing {
 public:
  // With the client's own lock options, or these. Throws errc::invalid_argument or
  // errc::unsupported.
  rlock(client& on, std::string_view name);
  rlock(client& on, std::string_view name, const lock_options& options);

  // --- std TimedLockable, re-entrant -----------------------------------------------------------
  // A thread that holds the lock has it once more, without asking the server. If what it held was
  // lost meanwhile, these throw errc::lease_lost until it has unlocked as often as it had locked:
  // the work in the outer scope is not protected any more, and must not go on as if it were.
  void lock() { again_.lock(); }
  bool try_lock() { return again_.try_lock(); }
  template <class Rep, class Period>
  bool try_lock_for(const std::chrono::duration<Rep, Period>& wait) {
    return again_.try_lock_for(wait);
  }
  template <class Clock, class Duration>
  bool try_lock_until(const std::chrono::time_point<Clock, Duration>& until) {
    return again_.try_lock_until(until);
  }
  // The last one sends the release, and does not wait for it. After a loss it leaves the lock of
  // its next holder alone.
  void unlock() noexcept { again_.unlock(); }

  // How often the calling thread has locked it and not unlocked.
  [[nodiscard]] std::size_t holds() const noexcept { return again_.depth(); }
  // The calling thread's lease while it holds the lock by lock(), to see its loss; else nullptr.
  [[nodiscard]] lease* current() noexcept { return again_.current(); }

  // Who has it. Of a holder that is not Holdfast's, `value` is what Redisson calls it,
  // "<client's uuid>:<thread id>".
  [[nodiscard]] lock_status status();
  // Takes the lock from whoever has it, as Redisson's forceUnlock() does. False: nobody had it.
  // Its holder hears of it a round trip later, or at its first renewal, a second after the grant:
  // exclusion is in your hands.
  bool force_unlock();

 protected:
  enum class kind { plain, fenced, fair };
  rlock(client& on, std::string_view name, const lock_options& options, kind of);

 private:
  recursive_mutex again_;
};

// The lock that Java's `redisson.getFencedLock(name)` is: an rlock with tokens, which the server
// counts for this lock, 1, 2, 3 and so on.
//
// One resource must never be shown both these tokens and those of holdfast::mutex, which are near
// 1.8e15: after one of ours it would refuse Java's for ever. Nor is a counter safe against a server
// that restarts with old data: then it grants the same token twice. And never use rlock, or Java's
// getLock(), on the same name: it takes the lock without a new token.
class HOLDFAST_API rfenced_lock : public rlock {
 public:
  rfenced_lock(client& on, std::string_view name);
  rfenced_lock(client& on, std::string_view name, const lock_options& options);
};

// The semaphore that Java's `redisson.getPermitExpirableSemaphore(name)` is. A permit is a lease,
// and one is acquired at a time; lease.token() is 0. It is renewed, its loss is told, and that of a
// holder that is gone is to be had again after its TTL. Waiting is as with rlock: no queue, and a
// release on either side wakes waiters on the other.
//
// Permits end by wall clocks: Java's by those of its processes, ours by the server's. A Java
// process whose clock is ahead of the server's by a TTL takes permits from their holders, who are
// told.
class HOLDFAST_API rpermit_expirable_semaphore : public leasing {
 public:
  // `permits`: how many there are to be, if neither Java's trySetPermits() nor another has said so
  // before; zero: leave that to them, and wait until they have.
  rpermit_expirable_semaphore(client& on, std::string_view name, std::uint32_t permits = 0);
  rpermit_expirable_semaphore(client& on, std::string_view name, std::uint32_t permits,
                              const lock_options& options);
};

}  // namespace holdfast::redisson

#include <holdfast/redisson/fair_lock.hpp>        // rfair_lock
#include <holdfast/redisson/read_write_lock.hpp>  // rread_write_lock
