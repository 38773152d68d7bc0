// Fencing at the resource: what turns a token into protection.
#pragma once

#include <atomic>
#include <cstdint>

#include <holdfast/token.hpp>

namespace holdfast::fence {

// An in-process gate that lets through only the newest holder. Thread-safe, lock-free.
//
// Tell it the token *before the first read*, not only with the write: otherwise a new holder can
// read, the old one write, and the new one overwrite that from what it read.
//
//   if (!gate.accept(lease.token())) return overtaken();
//   auto row = read();
//   if (!gate.accept(lease.token())) return overtaken();
//   write(change(row));
class gate {
 public:
  gate() noexcept = default;
  // A gate that starts where an earlier one ended, e.g. from what a database stored.
  explicit gate(fencing_token highest) noexcept : highest_{highest.value()} {}

  // True if no higher token has been seen; remembers this one.
  [[nodiscard]] bool accept(fencing_token token) noexcept {
    std::uint64_t seen = highest_.load(std::memory_order_acquire);
    while (seen < token.value()) {
      if (highest_.compare_exchange_weak(seen, token.value(), std::memory_order_acq_rel)) {
        return true;
      }
    }
    return seen == token.value();
  }

  [[nodiscard]] fencing_token highest() const noexcept {
    return fencing_token{highest_.load(std::memory_order_acquire)};
  }

 private:
  std::atomic<std::uint64_t> highest_{0};
};

}  // namespace holdfast::fence
