// Waking a thread that waits for sockets.
#pragma once

#include <memory>

#include "runtime/fd.hpp"

namespace holdfast::stores::redlock {

// Wakes a thread that polls. One for each thread that ever waited for nodes.
class bell {
 public:
  [[nodiscard]] static const std::shared_ptr<bell>& of_this_thread();
  bell();
  void ring() const noexcept;
  void silence() const noexcept;
  [[nodiscard]] int fd() const noexcept { return fd_.get(); }

 private:
  runtime::unique_fd fd_;
};

}  // namespace holdfast::stores::redlock
