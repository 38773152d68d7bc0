// A lock for many readers or one writer.
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
class shared_mutex_state;
}

// A handle on a named lock; made by client::shared_mutex(). Thread-safe. Cheap to copy: copies, and
// other handles on the same name from the same client, are the same lock. Keeps its client alive.
//
// First come, first served: a writer that waits holds back the readers that come after it, and
// readers that wait one behind the other get in together. At most 10,000 read at a time. Each
// holder has a lease of its own: if a reader dies, its share is free after its TTL, and no other's.
//
// Sound on one Redis server (redis://, unix:, local:) and in memory:. A quorum refuses it so far.
//
// Fencing: a writer's token is above those of all holders before it. Readers that hold together
// have different tokens; a resource that checks them takes reads as it comes, and compares for
// writes.
//
//   std::shared_lock reading{config};           // std::unique_lock and std::scoped_lock to write
//   if (auto lease = config.try_acquire_shared(500ms)) read(lease->lost());
class HOLDFAST_API shared_mutex {
 public:
  shared_mutex(const shared_mutex&) noexcept;
  shared_mutex& operator=(const shared_mutex&) noexcept;
  shared_mutex(shared_mutex&&) noexcept;
  shared_mutex& operator=(shared_mutex&&) noexcept;
  ~shared_mutex();

  [[nodiscard]] const std::string& name() const noexcept;

  // To write. As the same members of mutex: what they wait for, throw, and leave behind.
  [[nodiscard]] std::optional<lease> try_acquire(const std::stop_token& stop = {});
  [[nodiscard]] std::optional<lease> try_acquire(any_nanoseconds wait,
                                                 const std::stop_token& stop = {});
  [[nodiscard]] lease acquire(const std::stop_token& stop = {});
  [[nodiscard]] lease acquire(any_nanoseconds wait, const std::stop_token& stop = {});
  [[nodiscard]] result<lease> acquire_result(const std::stop_token& stop = {});
  [[nodiscard]] result<lease> acquire_result(any_nanoseconds wait,
                                             const std::stop_token& stop = {});

  // To read.
  [[nodiscard]] std::optional<lease> try_acquire_shared(const std::stop_token& stop = {});
  [[nodiscard]] std::optional<lease> try_acquire_shared(any_nanoseconds wait,
                                                        const std::stop_token& stop = {});
  [[nodiscard]] lease acquire_shared(const std::stop_token& stop = {});
  [[nodiscard]] lease acquire_shared(any_nanoseconds wait, const std::stop_token& stop = {});
  [[nodiscard]] result<lease> acquire_shared_result(const std::stop_token& stop = {});
  [[nodiscard]] result<lease> acquire_shared_result(any_nanoseconds wait,
                                                    const std::stop_token& stop = {});

  // Makes a writer's lease a reader's, without a moment in between: readers that wait next come in
  // at once. The lease keeps its token and is extended. errc::lease_lost if it has ended; after
  // errc::outcome_unknown or store_unreachable it may be either, and calling again is safe. There
  // is no way back: two readers that both wanted to write would wait for each other. A thread that
  // called lock() still calls unlock(), not unlock_shared().
  [[nodiscard]] result<void> downgrade(lease& held);

  // As mutex::adopt(), for what was acquired either way.
  [[nodiscard]] lease adopt(const lease_ticket& ticket);

  // --- std SharedTimedMutex --------------------------------------------------------------------
  // By thread, as in mutex. A thread that holds the lock either way and asks again would wait for
  // itself, or for a writer that waits for it: lock() and lock_shared() throw errc::would_deadlock,
  // and the others say false. A reader that has to write unlocks first.
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

  void lock_shared();
  bool try_lock_shared();
  template <class Rep, class Period>
  bool try_lock_shared_for(const std::chrono::duration<Rep, Period>& wait) {
    return try_lock_shared_within(any_nanoseconds{wait});
  }
  template <class Clock, class Duration>
  bool try_lock_shared_until(const std::chrono::time_point<Clock, Duration>& until) {
    return try_lock_shared_for(until - Clock::now());
  }
  void unlock_shared() noexcept;

  // The calling thread's lease while it holds this lock, either way, through the members above;
  // nullptr otherwise. Valid until this thread unlocks.
  [[nodiscard]] lease* current() noexcept;

 private:
  friend class client;
  explicit shared_mutex(std::shared_ptr<detail::shared_mutex_state> state) noexcept;
  bool try_lock_within(std::chrono::nanoseconds wait);
  bool try_lock_shared_within(std::chrono::nanoseconds wait);
  std::shared_ptr<detail::shared_mutex_state> state_;
};

}  // namespace holdfast
