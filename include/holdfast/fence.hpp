// Fencing at the resource: what turns a token into protection.
//
// A resource that is fenced hears the token *before the first read*, and again with each write. To
// check writes alone is not enough: a new holder can read, the old one write, and the new one
// overwrite that from what it read. One fence sees the tokens of one lock only.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <string_view>
#include <utility>

#include <holdfast/export.hpp>
#include <holdfast/token.hpp>

namespace holdfast::fence {

// Lets through only the newest holder, inside a process: for a service that owns the resource.
// Thread-safe; accept() waits while a write is under way in run().
//
//   if (!gate.accept(lease.token())) return overtaken();
//   auto row = read();
//   if (!gate.run(lease.token(), [&] { write(change(row)); })) return overtaken();
class gate {
 public:
  gate() noexcept = default;
  // A gate that starts where an earlier one ended, e.g. from what a database stored.
  explicit gate(fencing_token highest) noexcept : highest_{highest} {}

  // Before the first read. True if no higher token has been seen; remembers this one. Zero is no
  // token: a lock that has none is never let in.
  [[nodiscard]] bool accept(fencing_token token) {
    const std::lock_guard guard{mutex_};
    if (token < highest_ || token == fencing_token{}) return false;
    highest_ = token;
    return true;
  }

  // For each write: calls `write` if this is the token that was accepted last, and lets no other
  // token in until it returns. False, and nothing is called, for one that has been overtaken, or
  // was not accepted before the first read. Passes on what `write` throws; it must not use the
  // gate.
  template <class Write>
  [[nodiscard]] bool run(fencing_token token, Write&& write) {
    const std::lock_guard guard{mutex_};
    if (token != highest_ || token == fencing_token{}) return false;
    std::invoke(std::forward<Write>(write));
    return true;
  }

  [[nodiscard]] fencing_token highest() const {
    const std::lock_guard guard{mutex_};
    return highest_;
  }

 private:
  mutable std::mutex mutex_;
  fencing_token highest_{};
};

// The same inside a Redis that is the resource: a Lua script for your own client's EVAL. Its head
// says what it takes and answers; docs/fences.md shows it at work. Valid for ever.
[[nodiscard]] HOLDFAST_API std::string_view redis_script() noexcept;

// The same inside a PostgreSQL database: SQL that installs holdfast.admit(), holdfast.confirm() and
// a trigger for tables that are only to be written with a token. Running it again changes nothing.
[[nodiscard]] HOLDFAST_API std::string_view postgresql_schema() noexcept;

}  // namespace holdfast::fence
