// What handles on Redisson's locks have in common: their name, and leases.
#pragma once

#include <optional>
#include <stop_token>
#include <string>
#include <utility>

#include <holdfast/duration.hpp>
#include <holdfast/export.hpp>
#include <holdfast/lease.hpp>
#include <holdfast/mutex.hpp>
#include <holdfast/result.hpp>

namespace holdfast::redisson {

// Leases, as holdfast::mutex has them; its header says what each member does. A lease is an owner
// of its own: a thread that holds one and asks for another waits for itself. Thread-safe.
class HOLDFAST_API leasing {
 public:
  [[nodiscard]] const std::string& name() const noexcept { return lock_.name(); }

  [[nodiscard]] std::optional<lease> try_acquire(const std::stop_token& stop = {}) {
    return lock_.try_acquire(stop);
  }
  [[nodiscard]] std::optional<lease> try_acquire(any_nanoseconds wait,
                                                 const std::stop_token& stop = {}) {
    return lock_.try_acquire(wait, stop);
  }
  [[nodiscard]] lease acquire(const std::stop_token& stop = {}) { return lock_.acquire(stop); }
  [[nodiscard]] lease acquire(any_nanoseconds wait, const std::stop_token& stop = {}) {
    return lock_.acquire(wait, stop);
  }
  [[nodiscard]] result<lease> acquire_result(const std::stop_token& stop = {}) {
    return lock_.acquire_result(stop);
  }
  [[nodiscard]] result<lease> acquire_result(any_nanoseconds wait,
                                             const std::stop_token& stop = {}) {
    return lock_.acquire_result(wait, stop);
  }
  [[nodiscard]] lease adopt(const lease_ticket& ticket) { return lock_.adopt(ticket); }

 protected:
  explicit leasing(mutex lock) noexcept : lock_{std::move(lock)} {}

  mutex lock_;
};

}  // namespace holdfast::redisson
