// Counters that are shared with Java programs that use Redisson.
#pragma once

#include <cstdint>
#include <stop_token>
#include <string>
#include <string_view>

#include <holdfast/client.hpp>
#include <holdfast/counter_handle.hpp>
#include <holdfast/duration.hpp>
#include <holdfast/export.hpp>
#include <holdfast/result.hpp>

namespace holdfast::redisson {

// The semaphore that Java's `redisson.getSemaphore(name)` is: a number of permits, and nothing
// else. Needs redis://, unix: or local:; elsewhere making one throws errc::unsupported.
// Thread-safe. Cheap to copy. Keeps its client alive.
//
// Permits have no lease, and no holder: those of a process that dies are gone until a program adds
// them again, as in Java, and a client may release permits that no client has acquired. Where
// Java's side leaves the choice, take rpermit_expirable_semaphore, or holdfast::semaphore.
//
// No queue: the first client that asks has them. A release on either side wakes waiters on both.
//
// Redisson's layout cannot tell a request from its repetition, so none is repeated: if the answer
// is lost, acquiring, releasing and setting throw errc::outcome_unknown, and may have happened.
// A program that goes on after that may hold permits that it does not know of, or give back twice.
//
//   holdfast::redisson::rsemaphore slots{client, "slots"};
//   slots.try_set_permits(4);
//   if (slots.try_acquire(1, 500ms)) { encode(); slots.release(); }
//
// Numbers are from 1 to 2,147,483,647, an int in Java; errc::invalid_argument for others.
class HOLDFAST_API rsemaphore {
 public:
  rsemaphore(client& on, std::string_view name);

  [[nodiscard]] const std::string& name() const noexcept { return handle_.name(); }

  // All of them or none.
  [[nodiscard]] bool try_acquire(std::uint32_t permits = 1);
  // False: not so many were free in time, or the wait was stopped.
  [[nodiscard]] bool try_acquire(std::uint32_t permits, any_nanoseconds wait,
                                 const std::stop_token& stop = {});
  // Waits for client_options::wait_limit; throws errc::timed_out, or errc::stopped.
  void acquire(std::uint32_t permits = 1, const std::stop_token& stop = {});
  [[nodiscard]] result<void> acquire_result(std::uint32_t permits = 1,
                                            const std::stop_token& stop = {});
  [[nodiscard]] result<void> acquire_result(std::uint32_t permits, any_nanoseconds wait,
                                            const std::stop_token& stop = {});

  void release(std::uint32_t permits = 1);
  [[nodiscard]] result<void> release_result(std::uint32_t permits = 1);

  // Less than none if more were taken away by add_permits() than there were.
  [[nodiscard]] std::int64_t available_permits();
  // False: how many there are was set before.
  bool try_set_permits(std::uint32_t permits);
  // So many more, or, with a negative number, fewer.
  void add_permits(std::int64_t permits);
  // Takes all that are to be had, and says how many those were.
  std::int64_t drain_permits();

 private:
  detail::counter_handle handle_;
};

// The latch that Java's `redisson.getCountDownLatch(name)` is. Needs redis://, unix: or local:;
// elsewhere making one throws errc::unsupported. Thread-safe. Cheap to copy. Keeps its client
// alive.
//
// Its key is gone at zero: a latch that nobody has set yet is open, so set it before the first
// waiter comes. At zero it can be set again. What a process has counted stays counted when it dies.
//
// Redisson's layout cannot tell a count from its repetition, so none is repeated: if the answer is
// lost, count_down() and try_set_count() throw errc::outcome_unknown, and may have happened.
// holdfast::latch counts once whatever happens, where no Java program shares it.
//
//   holdfast::redisson::rcount_down_latch tested{client, "tested"};
//   tested.try_set_count(3);
//   tested.wait();  // Java's await()
class HOLDFAST_API rcount_down_latch {
 public:
  rcount_down_latch(client& on, std::string_view name);

  [[nodiscard]] const std::string& name() const noexcept { return handle_.name(); }

  // False: it has a count, and has not come to zero yet. 1 to 2,147,483,647.
  bool try_set_count(std::uint32_t count);
  // Gives how many are left. Does nothing to one that is open.
  std::int64_t count_down();
  [[nodiscard]] result<std::int64_t> count_down_result();
  [[nodiscard]] std::int64_t count();

  // As the members of holdfast::latch.
  [[nodiscard]] bool try_wait() { return count() == 0; }
  void wait(const std::stop_token& stop = {});
  [[nodiscard]] bool wait(any_nanoseconds wait, const std::stop_token& stop = {});
  [[nodiscard]] result<void> wait_result(const std::stop_token& stop = {});
  [[nodiscard]] result<void> wait_result(any_nanoseconds wait, const std::stop_token& stop = {});

 private:
  detail::counter_handle handle_;
};

}  // namespace holdfast::redisson
