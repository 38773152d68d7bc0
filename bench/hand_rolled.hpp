// The baseline of uncontended cases: the lock that everybody writes by hand, with hiredis.
// SET NX PX, then a compare-and-delete script by its hash; both awaited. No token, no renewal.
#pragma once

#include <memory>
#include <stdexcept>
#include <string>

#include <hiredis/hiredis.h>

namespace holdfast::bench {

class hand_rolled {
 public:
  explicit hand_rolled(redisContext* connected) : redis_{connected, &::redisFree} {
    if (!redis_ || redis_->err != 0) throw std::runtime_error{"baseline: cannot connect"};
    const auto loaded = ask("SCRIPT LOAD %s",
                            "if redis.call('GET', KEYS[1]) == ARGV[1] then "
                            "return redis.call('DEL', KEYS[1]) else return 0 end");
    sha_ = loaded->str;
  }

  bool lock(const std::string& key) {
    value_ = std::to_string(++attempts_);
    const auto got = ask("SET %s %s NX PX 30000", key.c_str(), value_.c_str());
    return got->type == REDIS_REPLY_STATUS;
  }
  void unlock(const std::string& key) {
    static_cast<void>(ask("EVALSHA %s 1 %s %s", sha_.c_str(), key.c_str(), value_.c_str()));
  }
  // EVAL and EVALSHA calls that the server has seen.
  long script_calls() {
    const auto info = ask("INFO commandstats");
    const std::string text{info->str, static_cast<std::size_t>(info->len)};
    long sum = 0;
    for (const std::string name : {"cmdstat_eval:calls=", "cmdstat_evalsha:calls="}) {
      if (const auto found = text.find(name); found != std::string::npos) {
        sum += std::stol(text.substr(found + name.size()));
      }
    }
    return sum;
  }
  void ping() { static_cast<void>(ask("PING")); }

 private:
  using reply = std::unique_ptr<redisReply, void (*)(redisReply*)>;
  template <class... Args>
  reply ask(const char* format, Args... args) {
    auto* got = static_cast<redisReply*>(::redisCommand(redis_.get(), format, args...));
    if (got == nullptr) throw std::runtime_error{"baseline: connection lost"};
    return {got, [](redisReply* r) { ::freeReplyObject(r); }};
  }

  std::unique_ptr<redisContext, void (*)(redisContext*)> redis_;
  std::string sha_;
  std::string value_;
  unsigned long attempts_ = 0;
};

}  // namespace holdfast::bench
