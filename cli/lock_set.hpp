// The locks that a command runs under.
#pragma once

#include <chrono>
#include <cstddef>
#include <stop_token>
#include <string>
#include <vector>

#include <holdfast/client.hpp>
#include <holdfast/lease.hpp>

#include "named_lock.hpp"

namespace holdfast::cli {

// How many names `run` takes: half of what HOLDFAST_HELD can note, and few enough for one message
// to the guardian.
inline constexpr std::size_t locks_at_once_max = 32;

// One lock of any kind, or several mutexes, in the order in which they were named. As thread-safe
// as the locks are.
class lock_set {
 public:
  lock_set(client& store, const std::vector<std::string>& names, const lock_choice& choice,
           const lock_options& how);

  [[nodiscard]] std::vector<named_lock>& locks() noexcept { return locks_; }
  [[nodiscard]] std::string names_in_quotes() const;
  // All, in the order of the names, or none. Throws holdfast::error.
  [[nodiscard]] std::vector<lease> try_acquire(std::chrono::nanoseconds wait,
                                               const std::stop_token& stop);

 private:
  std::vector<named_lock> locks_;
};

// The first that is lost; nullptr: none.
[[nodiscard]] const lease* lost_one(const std::vector<lease>& held) noexcept;
// How long all of them are still held if nothing is renewed. Zero once one is lost.
[[nodiscard]] std::chrono::nanoseconds remaining(const std::vector<lease>& held) noexcept;

}  // namespace holdfast::cli
