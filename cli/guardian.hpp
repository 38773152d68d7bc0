// The process that stands between a command and its wrapper, and kills the command in time when the
// wrapper cannot.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "guard_plan.hpp"
#include "guard_protocol.hpp"
#include "named_lock.hpp"
#include "signals.hpp"
#include "terminal.hpp"

namespace holdfast::cli {

struct guarded_command {
  std::vector<std::string> argv{};
  std::vector<std::string> lock_names{};
  lock_choice choice{};
  std::string store{};
  bool keeps_password = false;  ///< in its HOLDFAST_STORE
};

// Runs in a process of its own, forked from the wrapper before that has threads. It is the parent
// of the command, so the command's number stays taken (as a zombie at the least) for as long as
// somebody may signal it. It leads a process group of its own and ignores what terminals and
// service managers send, so that it outlives its wrapper by as long as the killing takes.
//
// If the wrapper is gone and the command with it, it gives the locks back: nobody else is left who
// could, and the next holder need not wait for the TTL to end.
//
// It never decides that a lease is good, only when time is up: at the last deadline it was told,
// when it is told of a loss, or when the wrapper is gone.
class guardian {
 public:
  guardian(int link, guarded_command command, const inherited_signals& inherited,
           terminal& tty) noexcept;
  [[nodiscard]] int run();  // the exit status

 private:
  void detach_from_wrapper();
  bool read_orders();  // false: the guardian's work is over
  void obey(const guard_order& order);
  void start(const guard_order& order);
  [[noreturn]] void exec_command(const guard_order& order, pid_t guard) const;
  void look_after_command();
  void act();
  void arm_timer() const;
  void give_back() const noexcept;
  void give_back(client& store, std::size_t which) const;
  [[nodiscard]] bool finished();
  void tell(guard_report::kind what, int value = 0, int signal = 0) const;

  // Constant after construction.
  const int link_;
  const guarded_command command_;
  const inherited_signals& inherited_;
  terminal& tty_;

  int timer_ = -1;
  guard_plan plan_;
  pid_t child_ = 0;        // the command, and its group
  bool exited_ = false;    // it has ended, and is kept as a zombie
  bool orphaned_ = false;  // the wrapper is gone
  bool gone_ = false;      // nobody of the group is left
  bool survived_ = false;  // or somebody is, who cannot be killed
  bool dismissed_ = false;
  std::array<guarded_hold, locks_at_once_max> holds_{};  // as lock_names
};

}  // namespace holdfast::cli
