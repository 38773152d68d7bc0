// The baseline of contended cases: a first-come-first-served lock as one writes it by hand. A
// queue, a wake-up by BLPOP, two scripts for an acquisition. No token, no TTL, no renewal, and a
// waiter that dies stops it for ever.
#pragma once

#include "asking.hpp"

namespace holdfast::bench {

class fifo {
 public:
  fifo(redisContext* connected, std::string key, const std::string& me)
      : redis_{connected}, key_{std::move(key)}, inbox_{key_ + ":inbox:" + me} {
    acquire_ = redis_.load(
        "if redis.call('EXISTS', KEYS[1]) == 0 then redis.call('SET', KEYS[1], ARGV[1]) return 1 "
        "end "
        "redis.call('RPUSH', KEYS[2], ARGV[1]) return 0");
    release_ = redis_.load(
        "local next = redis.call('LPOP', KEYS[2]) "
        "if next then redis.call('SET', KEYS[1], next) redis.call('LPUSH', next, 1) "
        "else redis.call('DEL', KEYS[1]) end return 1");
  }

  void lock() {
    const auto got = redis_.ask("EVALSHA %s 2 %s %s:queue %s", acquire_.c_str(), key_.c_str(),
                                key_.c_str(), inbox_.c_str());
    if (got->integer == 1) return;
    static_cast<void>(redis_.ask("BLPOP %s 0", inbox_.c_str()));
  }
  void unlock() {
    static_cast<void>(
        redis_.ask("EVALSHA %s 2 %s %s:queue", release_.c_str(), key_.c_str(), key_.c_str()));
  }

 private:
  asking redis_;
  std::string key_;
  std::string inbox_;
  std::string acquire_;
  std::string release_;
};

}  // namespace holdfast::bench
