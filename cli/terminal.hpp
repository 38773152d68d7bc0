// The controlling terminal, lent to the command's process group while it needs it.
#pragma once

#include <sys/types.h>

namespace holdfast::cli {

// The command runs in a process group of its own, and a terminal has one foreground group: without
// the loan an editor started through `holdfast run` would be stopped at its first read. In a
// pipeline (`holdfast run … | less`) others of our group need the terminal as well, so there it is
// lent only when the command asks for it, by being stopped for touching it.
// Not thread-safe. Without a controlling terminal every call does nothing.
class terminal {
 public:
  terminal();
  terminal(const terminal&) = delete;
  terminal& operator=(const terminal&) = delete;
  ~terminal();

  [[nodiscard]] bool exists() const noexcept { return fd_ >= 0; }
  // True when our own group is the foreground group.
  [[nodiscard]] bool ours() const noexcept;
  // True when the command should have it from the start: we have it and are not in a pipeline.
  [[nodiscard]] bool lend_at_start() const noexcept;
  [[nodiscard]] bool lent_to(pid_t group) const noexcept;

  // SIGTTOU must be ignored or blocked by the caller of these.
  void lend(pid_t group) noexcept;
  void take_back() noexcept;
  // Another process has set the terminal up anew while this one was stopped: nothing to take back.
  void forget_loan() noexcept { lent_ = false; }
  void note_loan() noexcept { lent_ = true; }

 private:
  int fd_ = -1;
  bool lent_ = false;
};

}  // namespace holdfast::cli
