#include "supervise.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <deque>
#include <stop_token>
#include <system_error>

#include "lock_set.hpp"
#include "process_group.hpp"

namespace holdfast::cli {
namespace {

constexpr std::int64_t ms_ns = 1'000'000;
constexpr std::chrono::milliseconds margin_max{5'000};
constexpr int tick_ms_min = 20;
constexpr int tick_ms_max = 1'000;
// A deadline that moved by less is not worth a message.
constexpr std::int64_t moved_ns = ms_ns;
// For processes that are slow to die inside the kernel.
constexpr int after_kill_ms = 2'000;

struct tell_of_loss {
  int event;
  void operator()() const { ::eventfd_write(event, 1); }
};

class supervisor {
 public:
  supervisor(const std::vector<lease>& held, const hold_timing& timing, guard_link& guard,
             signal_queue& signals, terminal& tty)
      : leases_{held},
        timing_{timing},
        guard_{guard},
        signals_{signals},
        tty_{tty},
        loss_event_{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)} {
    if (loss_event_ < 0) throw std::system_error{errno, std::generic_category(), "eventfd"};
  }
  supervisor(const supervisor&) = delete;
  supervisor& operator=(const supervisor&) = delete;
  ~supervisor() { ::close(loss_event_); }

  command_end run() {
    std::deque<std::stop_callback<tell_of_loss>> on_loss;  // they cannot be moved
    for (const auto& one : leases_)
      on_loss.emplace_back(one.lost(), tell_of_loss{loss_event_});
    const bool foreground = tty_.lend_at_start();
    if (foreground) tty_.note_loan();
    times_ = current_times();
    guard_.start(times_, leases_, foreground);
    while (!over()) {
      wait_for_something();
      while (const auto report = guard_.next())
        on_report(*report);
      if (over()) break;
      if (guard_.closed()) return without_guardian();
      handle_signals();
      keep_time();
      reap_orphans(guard_.pid());
    }
    tty_.take_back();
    return end_;
  }

 private:
  [[nodiscard]] bool over() const { return gone_ || (exited_ && !end_.lost); }

  // The clock is read first: a pause in between makes the deadline earlier, never later.
  [[nodiscard]] guard_times current_times() const {
    const std::int64_t now = boottime_ns();
    const std::int64_t term_at = now + remaining(leases_).count();
    return {term_at, term_at + timing_.grace_ns};
  }

  void wait_for_something() {
    std::array<pollfd, 3> fds{{{guard_.fd(), POLLIN, 0},
                               {group_ > 0 ? signals_.fd() : -1, POLLIN, 0},
                               {end_.lost ? -1 : loss_event_, POLLIN, 0}}};
    ::poll(fds.data(), fds.size(), timing_.tick_ms);
  }

  void on_report(const guard_report& report) {
    switch (report.what) {
      case guard_report::kind::forked:
        group_ = report.value;
        return;
      case guard_report::kind::stopped:
        return on_stopped(report.value);
      case guard_report::kind::terminating:
        if (!end_.lost) lose(times_.kill_at_ns);
        return;
      case guard_report::kind::exited:
        exited_ = true;
        end_.status = report.value;
        end_.signal = report.signal;
        // It is kept as a zombie, so the terminal still names its group.
        end_.had_terminal = tty_.lent_to(group_);
        end_.was_told = report.signal != 0 && report.signal == passed_on_ && tty_.ours();
        return;
      case guard_report::kind::gone:
        gone_ = true;
        return;
    }
  }

  void handle_signals() {
    if (group_ == 0) return;
    while (const auto number = signals_.next()) {
      if (*number == SIGCONT) {
        resume();
      } else {
        passed_on_ = *number;
        end_.told_to_end = end_.told_to_end || ends_a_wait(*number);
        signal_group(group_, *number);
      }
    }
  }

  void keep_time() {
    if (!end_.lost && lost_one(leases_) != nullptr) {
      lose(std::min(boottime_ns() + timing_.grace_ns, times_.kill_at_ns));
      guard_.lose(kill_at_ns_);
    }
    if (end_.lost) {
      if (boottime_ns() > kill_at_ns_ + timing_.own_kill_after_ns) kill_it_ourselves();
      return;
    }
    const guard_times now = current_times();
    if (now.term_at_ns > times_.term_at_ns + moved_ns) {
      times_ = now;
      guard_.extend(times_);
    }
  }

  void lose(std::int64_t kill_at_ns) {
    end_.lost = true;
    kill_at_ns_ = kill_at_ns;
  }

  // The guardian is stopped, or starved: it would have reported by now.
  void kill_it_ourselves() {
    signal_group(group_, SIGKILL);
    end_.survived = group_ > 0 && !wait_group_gone(group_, after_kill_ms);
    gone_ = true;
  }

  // Whoever killed the guardian killed the command with it (the kernel sees to that), but not what
  // the command had started.
  command_end without_guardian() {
    kill_it_ourselves();
    tty_.take_back();
    end_.guardian_died = true;
    return end_;
  }

  void on_stopped(int number) {
    const bool wants_terminal = number == SIGTTIN || number == SIGTTOU;
    if (!tty_.exists() || number == SIGSTOP) return;  // what stopped it will continue it
    if (wants_terminal && (tty_.ours() || tty_.lent_to(group_))) {
      tty_.lend(group_);
      return signal_group(group_, SIGCONT);
    }
    had_terminal_ = tty_.lent_to(group_) || wants_terminal;
    tty_.take_back();
    stop_like_the_terminal();  // renewals stop too: the guardian's clock goes on
    resume();
  }

  void resume() {
    if (tty_.ours()) {
      if (had_terminal_) tty_.lend(group_);
    } else if (!tty_.lent_to(group_)) {
      tty_.forget_loan();
    }
    signal_group(group_, SIGCONT);
  }

  const std::vector<lease>& leases_;
  const hold_timing& timing_;
  guard_link& guard_;
  signal_queue& signals_;
  terminal& tty_;
  const int loss_event_;

  guard_times times_;            // what the guardian was told last
  std::int64_t kill_at_ns_ = 0;  // once lost
  pid_t group_ = 0;              // zero until the guardian has forked
  bool exited_ = false;
  bool gone_ = false;
  bool had_terminal_ = false;  // when it was stopped
  int passed_on_ = 0;          // the last signal that was
  command_end end_;
};

}  // namespace

hold_timing::hold_timing(std::chrono::milliseconds ttl_of_lease) noexcept
    : ttl{ttl_of_lease},
      margin{std::min(ttl / 3, margin_max)},
      grace_ns{margin.count() * ms_ns / 2},
      own_kill_after_ns{margin.count() * ms_ns / 8},
      tick_ms{
          static_cast<int>(std::clamp<std::int64_t>(ttl.count() / 10, tick_ms_min, tick_ms_max))} {}

command_end supervise(const std::vector<lease>& held, const hold_timing& timing, guard_link& guard,
                      signal_queue& signals, terminal& tty) {
  return supervisor{held, timing, guard, signals, tty}.run();
}

}  // namespace holdfast::cli
