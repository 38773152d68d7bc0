// The wrapper's hold on its guardian.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <vector>

#include <holdfast/lease.hpp>

#include "guard_protocol.hpp"
#include "guardian.hpp"

namespace holdfast::cli {

// When a command is to be told to stop, and when to be killed.
struct guard_times {
  std::int64_t term_at_ns = 0;  ///< CLOCK_BOOTTIME
  std::int64_t kill_at_ns = 0;
};

// Forks the guardian, which waits for orders. Construct it before anything has started a thread.
// Never blocks: a guardian that does not read is one that does not run, and the wrapper has its own
// ways then. Not thread-safe.
class guard_link {
 public:
  guard_link(const guarded_command& command, const inherited_signals& inherited, terminal& tty);
  guard_link(const guard_link&) = delete;
  guard_link& operator=(const guard_link&) = delete;
  // Lets the guardian go. If the command still runs, that ends it (see guardian.hpp).
  ~guard_link();

  [[nodiscard]] int fd() const noexcept { return fd_; }
  [[nodiscard]] pid_t pid() const noexcept { return guard_; }

  // Before the start: what the command is told as its one lock's token, instead of the lease's own.
  void tell_token(fencing_token counted) noexcept { told_token_ = counted; }
  void start(guard_times times, const std::vector<lease>& held, bool foreground);
  void extend(guard_times times);
  void lose(std::int64_t kill_at_ns);

  [[nodiscard]] std::optional<guard_report> next();               // empty: nothing new
  [[nodiscard]] bool closed() const noexcept { return closed_; }  // the guardian is dead

  // Ends the guardian and waits for that. For when nothing is left to guard.
  void dismiss() noexcept;

 private:
  void send(const guard_order& order);

  int fd_ = -1;
  pid_t guard_ = 0;
  std::optional<fencing_token> told_token_;
  bool started_ = false;
  bool closed_ = false;
};

}  // namespace holdfast::cli
