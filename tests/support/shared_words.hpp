// A few numbers in a file, shared with a process that maps it.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <stdexcept>
#include <string>

#include "support/temp_dir.hpp"

namespace holdfast::test {

// Must outlive the process that uses it. All zero at first.
class shared_words {
 public:
  shared_words(const std::string& name, std::size_t count)
      : file_{folder_.file(name)}, size_{count * sizeof(std::int64_t)} {
    const int fd = ::open(file_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    const bool sized = fd >= 0 && ::ftruncate(fd, static_cast<off_t>(size_)) == 0;
    void* mapped =
        sized ? ::mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) : MAP_FAILED;
    if (fd >= 0) ::close(fd);
    if (mapped == MAP_FAILED) throw std::runtime_error{"cannot map " + file_};
    words_ = static_cast<volatile std::int64_t*>(mapped);
  }
  shared_words(const shared_words&) = delete;
  shared_words& operator=(const shared_words&) = delete;
  ~shared_words() { ::munmap(const_cast<std::int64_t*>(words_), size_); }

  [[nodiscard]] const std::string& file() const noexcept { return file_; }
  [[nodiscard]] std::int64_t get(std::size_t i) const { return words_[i]; }
  void set(std::size_t i, std::int64_t value) { words_[i] = value; }
  void add(std::size_t i, std::int64_t value) { words_[i] = words_[i] + value; }

 private:
  temp_dir folder_;
  std::string file_;
  std::size_t size_;
  volatile std::int64_t* words_ = nullptr;
};

}  // namespace holdfast::test
