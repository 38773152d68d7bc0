// The baseline of contended cases: a first-come-first-served lock as one writes it by hand. A
// queue, a wake-up by BLPOP, two scripts for an acquisition. No token, no TTL, no renewal, and a
// waiter that dies stops it for ever.
#pragma once

#include <memory>
#include <stdexcept>
#include <string>

#include <hiredis/hiredis.h>

namespace holdfast::bench {

class fifo {
 public:
  fifo(redisContext* connected, std::string key, const std::string& me)
      : redis_{connected, &::redisFree}, key_{std::move(key)}, inbox_{key_ + ":inbox:" + me} {
    if (!redis_ || redis_->err != 0) throw std::runtime_error{"baseline: cannot connect"};
    acquire_ = load(
        "if redis.call('EXISTS', KEYS[1]) == 0 then redis.call('SET', KEYS[1], ARGV[1]) return 1 "
        "end "
        "redis.call('RPUSH', KEYS[2], ARGV[1]) return 0");
    release_ = load(
        "local next = redis.call('LPOP', KEYS[2]) "
        "if next then redis.call('SET', KEYS[1], next) redis.call('LPUSH', next, 1) "
        "else redis.call('DEL', KEYS[1]) end return 1");
  }

  void lock() {
    const auto got = ask("EVALSHA %s 2 %s %s:queue %s", acquire_.c_str(), key_.c_str(),
                         key_.c_str(), inbox_.c_str());
    if (got->integer == 1) return;
    static_cast<void>(ask("BLPOP %s 0", inbox_.c_str()));
  }
  void unlock() {
    static_cast<void>(
        ask("EVALSHA %s 2 %s %s:queue", release_.c_str(), key_.c_str(), key_.c_str()));
  }

 private:
  using reply = std::unique_ptr<redisReply, void (*)(redisReply*)>;
  template <class... Args>
  reply ask(const char* format, Args... args) {
    auto* got = static_cast<redisReply*>(::redisCommand(redis_.get(), format, args...));
    if (got == nullptr) throw std::runtime_error{"baseline: connection lost"};
    return {got, [](redisReply* r) { ::freeReplyObject(r); }};
  }
  std::string load(const char* script) { return ask("SCRIPT LOAD %s", script)->str; }

  std::unique_ptr<redisContext, void (*)(redisContext*)> redis_;
  std::string key_;
  std::string inbox_;
  std::string acquire_;
  std::string release_;
};

}  // namespace holdfast::bench
