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

// What to try of a key that is not a lock of this kind, in parentheses; nothing if `problem` is
// something else, or a format was chosen.
[[nodiscard]] std::string other_format_hint(const error& problem, const lock_choice& choice);

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
  // Takes it from its holder: a lock of Redisson from any, false if there is none; other locks only
  // from the holder with the token, throws errc::not_held if there is none.
  bool take_away(fencing_token token);
  // Of a lock that was chosen to be one.
  [[nodiscard]] const mutex& as_mutex() const { return std::get<mutex>(lock_); }

 private:
  client& store_;
  const lock_choice choice_;
  std::variant<mutex, shared_mutex, semaphore, redisson::rlock, redisson::rread_write_side> lock_;
};

}  // namespace holdfast::cli
