// A wall clock of another process that stands where a test puts it (see preload/clock_set.c).
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <stdexcept>
#include <string>

#include "support/redis_server.hpp"
#include "support/temp_dir.hpp"

namespace holdfast::test {

// Must outlive the process that uses it.
class set_clock {
 public:
  explicit set_clock(std::int64_t wall_us) : file_{folder_.file("wall_us")} {
    const int fd = ::open(file_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    const bool sized = fd >= 0 && ::ftruncate(fd, size) == 0;
    void* mapped =
        sized ? ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) : MAP_FAILED;
    if (fd >= 0) ::close(fd);
    if (mapped == MAP_FAILED) throw std::runtime_error{"cannot map " + file_};
    wall_us_ = static_cast<volatile std::int64_t*>(mapped);
    *wall_us_ = wall_us;
  }
  set_clock(const set_clock&) = delete;
  set_clock& operator=(const set_clock&) = delete;
  ~set_clock() { ::munmap(const_cast<std::int64_t*>(wall_us_), size); }

  // Adds what a redis_server needs to see this clock.
  [[nodiscard]] redis_server_options on(redis_server_options options = {}) const {
    options.preload = HOLDFAST_PRELOAD_DIR "/clock_set.so";
    options.environment.push_back("HOLDFAST_CLOCK_SET=" + file_);
    return options;
  }

  [[nodiscard]] std::int64_t wall_us() const { return *wall_us_; }
  void advance(std::int64_t us) { *wall_us_ = *wall_us_ + us; }

 private:
  static constexpr std::size_t size = sizeof(std::int64_t);
  temp_dir folder_;
  std::string file_;
  volatile std::int64_t* wall_us_ = nullptr;
};

}  // namespace holdfast::test
