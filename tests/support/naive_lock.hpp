// The locks that people write by hand on Redis, bugs included: negative controls. A scenario that
// does not break these proves nothing about Holdfast.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>

#include "support/raw_redis.hpp"

namespace holdfast::test {

// Not thread-safe: one connection, one holder.
class naive_lock {
 public:
  naive_lock(const endpoint& where, std::string key) : redis_{where}, key_{std::move(key)} {}

  // SET NX PX with the same value for everybody.
  bool lock(std::chrono::milliseconds ttl) {
    return !nil(redis_.command({"SET", key_, "1", "NX", "PX", std::to_string(ttl.count())}));
  }
  // The first half of SETNX and EXPIRE: where a crash may come.
  bool lock_without_expiry() { return redis_.command({"SETNX", key_, "1"}).integer == 1; }
  void expire(std::chrono::milliseconds ttl) {
    redis_.command({"PEXPIRE", key_, std::to_string(ttl.count())});
  }
  // DEL, whoever holds it by now.
  void unlock() { redis_.command({"DEL", key_}); }

  // A fencing token from a plain counter.
  std::int64_t next_token() { return redis_.command({"INCR", key_ + ":token"}).integer; }

 private:
  static bool nil(const reply& r) { return r.type == reply::kind::nil; }
  raw_redis redis_;
  const std::string key_;
};

}  // namespace holdfast::test
