// A wall clock of another process that stands where a test puts it (see preload/clock_set.c).
#pragma once

#include "support/built.hpp"
#include "support/redis_server.hpp"
#include "support/shared_words.hpp"

namespace holdfast::test {

// Must outlive the process that uses it.
class set_clock {
 public:
  explicit set_clock(std::int64_t wall_us) { wall_us_.set(0, wall_us); }

  // Adds what a redis_server needs to see this clock.
  [[nodiscard]] redis_server_options on(redis_server_options options = {}) const {
    options.preload = HOLDFAST_PRELOAD_DIR "/clock_set.so";
    options.environment.push_back("HOLDFAST_CLOCK_SET=" + wall_us_.file());
    return options;
  }

  [[nodiscard]] std::int64_t wall_us() const { return wall_us_.get(0); }
  void advance(std::int64_t us) { wall_us_.add(0, us); }

 private:
  shared_words wall_us_{"wall_us", 1};
};

}  // namespace holdfast::test
