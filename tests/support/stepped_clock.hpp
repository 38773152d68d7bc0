// Clocks of another process, to be stepped while it runs (see preload/clock_step.c).
#pragma once

#include <chrono>
#include <map>
#include <optional>

#include "support/built.hpp"
#include "support/redis_server.hpp"
#include "support/shared_words.hpp"

namespace holdfast::test {

// Must outlive the process that uses it.
class stepped_clock {
 public:
  // Adds what a redis_server needs to see these clocks.
  [[nodiscard]] redis_server_options on(redis_server_options options = {}) const {
    options.preload = library;
    options.environment.push_back("HOLDFAST_CLOCK_STEP=" + offsets_us_.file());
    return options;
  }
  // The same for a child_process. A sanitizer's runtime insists on being loaded first otherwise.
  [[nodiscard]] std::map<std::string, std::optional<std::string>> environment() const {
    return {{"LD_PRELOAD", library},
            {"HOLDFAST_CLOCK_STEP", offsets_us_.file()},
            {"ASAN_OPTIONS", "verify_asan_link_order=0"}};
  }

  void step_wall_clock(std::chrono::microseconds by) { offsets_us_.add(0, by.count()); }
  // As if the host had been suspended for so long: CLOCK_BOOTTIME goes on, CLOCK_MONOTONIC stops.
  void suspend(std::chrono::microseconds by) { offsets_us_.add(1, by.count()); }

 private:
  static constexpr const char* library = HOLDFAST_PRELOAD_DIR "/clock_step.so";
  shared_words offsets_us_{"offsets_us", 2};
};

}  // namespace holdfast::test
