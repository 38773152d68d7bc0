// Waking a thread that waits for sockets.
#pragma once

#include <memory>

#include "runtime/fd.hpp"

namespace holdfast::runtime {

// Wakes a thread that polls its descriptor. Thread-safe.
class wake_fd {
 public:
  // One for each thread that ever asked for it.
  [[nodiscard]] static const std::shared_ptr<wake_fd>& of_this_thread();
  wake_fd();
  void wake() const noexcept;
  void reset() const noexcept;
  [[nodiscard]] int fd() const noexcept { return fd_.get(); }

 private:
  unique_fd fd_;
};

}  // namespace holdfast::runtime
