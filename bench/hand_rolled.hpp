// The baseline of uncontended cases: the lock that everybody writes by hand, with hiredis.
// SET NX PX, then a compare-and-delete script by its hash; both awaited. No token, no renewal.
#pragma once

#include <unistd.h>

#include "asking.hpp"

namespace holdfast::bench {

class hand_rolled {
 public:
  explicit hand_rolled(redisContext* connected)
      : redis_{connected}, sha_{redis_.load(compare_and_delete)} {}

  bool lock(const std::string& key) {
    value_ = std::to_string(::getpid()) + "/" + std::to_string(++attempts_);
    const auto got = redis_.ask("SET %s %s NX PX 30000", key.c_str(), value_.c_str());
    return got->type == REDIS_REPLY_STATUS;
  }
  void unlock(const std::string& key) {
    static_cast<void>(redis_.ask("EVALSHA %s 1 %s %s", sha_.c_str(), key.c_str(), value_.c_str()));
  }
  // EVAL and EVALSHA calls that the server has seen.
  long script_calls() {
    return static_cast<long>(
        sum_of(redis_.info("commandstats"), {"cmdstat_eval:calls=", "cmdstat_evalsha:calls="}));
  }
  // CPU seconds that the server has used.
  double cpu_seconds() { return sum_of(redis_.info("cpu"), {"used_cpu_sys:", "used_cpu_user:"}); }
  void ping() { static_cast<void>(redis_.ask("PING")); }

 private:
  static double sum_of(const std::string& info, std::initializer_list<std::string> names) {
    double sum = 0;
    for (const auto& name : names) {
      const auto found = info.find(name);
      if (found != std::string::npos) sum += std::stod(info.substr(found + name.size()));
    }
    return sum;
  }

  asking redis_;
  std::string sha_;
  std::string value_;
  unsigned long attempts_ = 0;
};

}  // namespace holdfast::bench
