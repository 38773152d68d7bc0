// A row that holders of a lock read, change and write, in a real Redis, PostgreSQL or etcd, with
// and without a fence.
#pragma once

#include <memory>
#include <stdexcept>
#include <string>

#include <holdfast/token.hpp>

namespace holdfast::test {

// What a holder shows its token for.
enum class fencing {
  none,    // nothing: the negative control
  writes,  // writes only: the other one
  all,     // before the first read, and with each write
};

// The resource does not let this token in.
class turned_away : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Not thread-safe: one connection.
class fenced_row {
 public:
  virtual ~fenced_row() = default;
  [[nodiscard]] virtual std::string read(fencing_token token) = 0;        // may throw turned_away
  virtual void write(fencing_token token, const std::string& value) = 0;  // may throw turned_away

  // `where`: unix:/path of a Redis server, http://host:port of an etcd, or what libpq connects to.
  [[nodiscard]] static std::unique_ptr<fenced_row> open(const std::string& where, fencing how);
};

}  // namespace holdfast::test
