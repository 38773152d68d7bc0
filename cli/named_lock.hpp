// The lock that a verb works on: its kind, and the format in which it is kept.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <variant>

#include <holdfast/client.hpp>
#include <holdfast/redisson.hpp>

namespace holdfast::cli {

struct lock_choice {
  enum class kind : unsigned char {
    mutex,
    reader,           ///< of a shared_mutex
    writer,           ///< of a shared_mutex
    permits,          ///< of a semaphore
    redisson,         ///< as Redisson's RLock: shared with Java programs, no tokens
    redisson_fenced,  ///< as its RFencedLock: tokens that count 1, 2, 3
    redisson_fair,    ///< as its RFairLock: first come, first served
    redisson_reader,  ///< of its RReadWriteLock
    redisson_writer,  ///< of its RReadWriteLock
  };
  kind what = kind::mutex;
  std::uint32_t wanted = 1;     ///< of permits
  std::uint32_t there_are = 1;  ///< of permits
};

// As thread-safe as the locks are.
class named_lock {
 public:
  named_lock(client& store, const std::string& name, const lock_choice& choice,
             lock_options how = {});

  [[nodiscard]] const std::string& name() const noexcept;
  [[nodiscard]] std::optional<lease> try_acquire(std::chrono::nanoseconds wait,
                                                 const std::stop_token& stop);
  [[nodiscard]] lease adopt(const lease_ticket& ticket);
  [[nodiscard]] lock_status status();

 private:
  client& store_;
  const lock_choice choice_;
  std::variant<mutex, shared_mutex, semaphore, redisson::rlock, redisson::rread_write_side> lock_;
};

}  // namespace holdfast::cli
