// A hiredis connection as baselines use it: one command, its reply awaited.
#pragma once

#include <memory>
#include <stdexcept>
#include <string>

#include <hiredis/hiredis.h>

namespace holdfast::bench {

// What a lock written by hand is given back with.
inline constexpr const char* compare_and_delete =
    "if redis.call('GET', KEYS[1]) == ARGV[1] then "
    "return redis.call('DEL', KEYS[1]) else return 0 end";

class asking {
 public:
  explicit asking(redisContext* connected) : redis_{connected, &::redisFree} {
    if (!redis_ || redis_->err != 0) throw std::runtime_error{"baseline: cannot connect"};
  }

  using reply = std::unique_ptr<redisReply, void (*)(redisReply*)>;
  template <class... Args>
  reply ask(const char* format, Args... args) {
    auto* got = static_cast<redisReply*>(::redisCommand(redis_.get(), format, args...));
    if (got == nullptr) throw std::runtime_error{"baseline: connection lost"};
    return own(got);
  }
  static reply own(redisReply* got) {
    return {got, [](redisReply* r) { ::freeReplyObject(r); }};
  }
  [[nodiscard]] redisContext* on() const noexcept { return redis_.get(); }
  std::string load(const char* script) { return ask("SCRIPT LOAD %s", script)->str; }
  std::string info(const char* section) {
    const auto said = ask("INFO %s", section);
    return {said->str, static_cast<std::size_t>(said->len)};
  }

 private:
  std::unique_ptr<redisContext, void (*)(redisContext*)> redis_;
};

}  // namespace holdfast::bench
