#include "terminal.hpp"

#include <fcntl.h>
#include <unistd.h>

namespace holdfast::cli {

terminal::terminal() : fd_{::open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC)} {}

terminal::~terminal() {
  if (fd_ >= 0) ::close(fd_);
}

bool terminal::ours() const noexcept { return lent_to(::getpgrp()); }

bool terminal::lent_to(pid_t group) const noexcept { return fd_ >= 0 && ::tcgetpgrp(fd_) == group; }

bool terminal::lend_at_start() const noexcept {
  return ours() && ::isatty(STDIN_FILENO) == 1 && ::isatty(STDOUT_FILENO) == 1;
}

void terminal::lend(pid_t group) noexcept {
  if (fd_ >= 0 && ::tcsetpgrp(fd_, group) == 0) lent_ = true;
}

void terminal::take_back() noexcept {
  if (lent_ && fd_ >= 0) ::tcsetpgrp(fd_, ::getpgrp());
  lent_ = false;
}

}  // namespace holdfast::cli
