#include "runtime/bell.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdint>

namespace holdfast::runtime {

bell::bell() : fd_{::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)} {}

const std::shared_ptr<bell>& bell::of_this_thread() {
  static thread_local const auto mine = std::make_shared<bell>();
  return mine;
}

void bell::ring() const noexcept {
  const std::uint64_t once = 1;
  // Full means that it rings already.
  static_cast<void>(::write(fd_.get(), &once, sizeof once) > 0);
}

void bell::silence() const noexcept {
  std::uint64_t rings = 0;
  static_cast<void>(::read(fd_.get(), &rings, sizeof rings) > 0);
}

}  // namespace holdfast::runtime
