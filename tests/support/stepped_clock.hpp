// Clocks of another process, to be stepped while it runs (see preload/clock_step.c).
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>

#include "support/redis_server.hpp"
#include "support/temp_dir.hpp"

namespace holdfast::test {

// Must outlive the process that uses it.
class stepped_clock {
 public:
  stepped_clock() : file_{folder_.file("offsets_us")} {
    const int fd = ::open(file_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    const bool sized = fd >= 0 && ::ftruncate(fd, size) == 0;
    void* mapped =
        sized ? ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) : MAP_FAILED;
    if (fd >= 0) ::close(fd);
    if (mapped == MAP_FAILED) throw std::runtime_error{"cannot map " + file_};
    offsets_us_ = static_cast<volatile std::int64_t*>(mapped);
  }
  stepped_clock(const stepped_clock&) = delete;
  stepped_clock& operator=(const stepped_clock&) = delete;
  ~stepped_clock() { ::munmap(const_cast<std::int64_t*>(offsets_us_), size); }

  // Adds what a redis_server needs to see these clocks.
  [[nodiscard]] redis_server_options on(redis_server_options options = {}) const {
    options.preload = library;
    options.environment.push_back("HOLDFAST_CLOCK_STEP=" + file_);
    return options;
  }
  // The same for a child_process. A sanitizer's runtime insists on being loaded first otherwise.
  [[nodiscard]] std::map<std::string, std::optional<std::string>> environment() const {
    return {{"LD_PRELOAD", library},
            {"HOLDFAST_CLOCK_STEP", file_},
            {"ASAN_OPTIONS", "verify_asan_link_order=0"}};
  }

  void step_wall_clock(std::chrono::microseconds by) {
    offsets_us_[0] = offsets_us_[0] + by.count();
  }
  // As if the host had been suspended for so long: CLOCK_BOOTTIME goes on, CLOCK_MONOTONIC stops.
  void suspend(std::chrono::microseconds by) { offsets_us_[1] = offsets_us_[1] + by.count(); }

 private:
  static constexpr const char* library = HOLDFAST_PRELOAD_DIR "/clock_step.so";
  static constexpr std::size_t size = 2 * sizeof(std::int64_t);
  temp_dir folder_;
  std::string file_;
  volatile std::int64_t* offsets_us_ = nullptr;
};

}  // namespace holdfast::test
