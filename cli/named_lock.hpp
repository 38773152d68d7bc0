// The lock that a verb works on, in the format in which it is kept.
#pragma once

#include <chrono>
#include <optional>
#include <stop_token>
#include <string>
#include <variant>

#include <holdfast/client.hpp>
#include <holdfast/redisson.hpp>

namespace holdfast::cli {

enum class lock_format : unsigned char {
  holdfast,
  redisson,         ///< as Redisson's RLock: shared with Java programs, no tokens
  redisson_fenced,  ///< as its RFencedLock: tokens that count 1, 2, 3
};

// As thread-safe as the locks are.
class named_lock {
 public:
  named_lock(client& store, const std::string& name, lock_format format, lock_options how = {});

  [[nodiscard]] const std::string& name() const noexcept;
  [[nodiscard]] std::optional<lease> try_acquire(std::chrono::nanoseconds wait,
                                                 const std::stop_token& stop);
  [[nodiscard]] lease adopt(const lease_ticket& ticket);
  [[nodiscard]] lock_status status();

 private:
  client& store_;
  std::variant<mutex, redisson::rlock> lock_;
};

}  // namespace holdfast::cli
