#include "runtime/wake_fd.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdint>

namespace holdfast::runtime {

wake_fd::wake_fd() : fd_{::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)} {}

const std::shared_ptr<wake_fd>& wake_fd::of_this_thread() {
  static thread_local const auto mine = std::make_shared<wake_fd>();
  return mine;
}

void wake_fd::wake() const noexcept {
  const std::uint64_t once = 1;
  // Full means that it is awake already.
  static_cast<void>(::write(fd_.get(), &once, sizeof once) > 0);
}

void wake_fd::reset() const noexcept {
  std::uint64_t rings = 0;
  static_cast<void>(::read(fd_.get(), &rings, sizeof rings) > 0);
}

}  // namespace holdfast::runtime
