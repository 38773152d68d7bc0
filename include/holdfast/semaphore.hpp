// So many at a time.
#pragma once

#include <cstdint>
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
class semaphore_state;
}

// A handle on a named number of permits; made by client::semaphore(). Thread-safe. Cheap to copy:
// copies are the same semaphore. Keeps its client alive.
//
// A permit is a lease: it is renewed while it is held, and comes back after its TTL if its holder
// dies. Several permits can be had by one lease, all or none of them. First come, first served: one
// that waits for many holds back those that come after it, however few they want.
//
// Sound on one Redis server (redis://, unix:, local:) and in memory:. Not on a quorum, which
// refuses it: a majority of counts that nodes keep each for themselves does not bound the total.
//
// Fencing: each lease has a token of its own, higher than those granted before it. Holders that
// hold together are not ordered by it: it tells a resource which lease a write came from, no more.
//
//   holdfast::semaphore slots = client.semaphore("encoders", 4);
//   const holdfast::lease slot = slots.acquire();
class HOLDFAST_API semaphore {
 public:
  semaphore(const semaphore&) noexcept;
  semaphore& operator=(const semaphore&) noexcept;
  semaphore(semaphore&&) noexcept;
  semaphore& operator=(semaphore&&) noexcept;
  ~semaphore();

  [[nodiscard]] const std::string& name() const noexcept;

  // One permit. As the same members of mutex: what they wait for, throw, and leave behind. If the
  // semaphore is in use with another number of permits, they throw errc::invalid_argument.
  [[nodiscard]] std::optional<lease> try_acquire(const std::stop_token& stop = {});
  [[nodiscard]] std::optional<lease> try_acquire(any_nanoseconds wait,
                                                 const std::stop_token& stop = {});
  [[nodiscard]] lease acquire(const std::stop_token& stop = {});
  [[nodiscard]] lease acquire(any_nanoseconds wait, const std::stop_token& stop = {});
  [[nodiscard]] result<lease> acquire_result(const std::stop_token& stop = {});
  [[nodiscard]] result<lease> acquire_result(any_nanoseconds wait,
                                             const std::stop_token& stop = {});

  // Several at once, given back together. errc::invalid_argument for more than there are, also if
  // that comes to be while waiting.
  [[nodiscard]] std::optional<lease> try_acquire(std::uint32_t permits, any_nanoseconds wait = {},
                                                 const std::stop_token& stop = {});
  [[nodiscard]] lease acquire(std::uint32_t permits, const std::stop_token& stop = {});
  [[nodiscard]] lease acquire(std::uint32_t permits, any_nanoseconds wait,
                              const std::stop_token& stop = {});
  [[nodiscard]] result<lease> acquire_result(std::uint32_t permits,
                                             const std::stop_token& stop = {});
  [[nodiscard]] result<lease> acquire_result(std::uint32_t permits, any_nanoseconds wait,
                                             const std::stop_token& stop = {});

  // Sets how many permits there are, 1 to 10,000: for all users, whatever number they were made
  // with, and for good, for it is kept when nobody holds one. Waiters that fit now are served at
  // once. Made smaller, holders finish, and nobody is let in until fewer are left. Safe to repeat
  // after errc::outcome_unknown.
  void resize(std::uint32_t permits);
  // As the store has it now; what this semaphore was made with if nobody holds a permit and
  // resize() was never called.
  [[nodiscard]] std::uint32_t capacity();

  // As mutex::adopt().
  [[nodiscard]] lease adopt(const lease_ticket& ticket);

 private:
  friend class client;
  explicit semaphore(std::shared_ptr<detail::semaphore_state> state) noexcept;
  std::shared_ptr<detail::semaphore_state> state_;
};

}  // namespace holdfast
