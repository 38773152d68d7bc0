#include "guardian.hpp"

#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <exception>

#include <fmt/format.h>

#include <holdfast/client.hpp>

#include "exit_code.hpp"
#include "lock_variables.hpp"
#include "process_group.hpp"
#include "say.hpp"
#include "store_url.hpp"

namespace holdfast::cli {
namespace {

constexpr std::int64_t ms_ns = 1'000'000;
// How long an abandoned command has between TERM and KILL, if its lease leaves that much.
constexpr std::int64_t abandoned_grace_ns = 5'000 * ms_ns;
// How often to look whether a group that was told to stop is gone.
constexpr std::int64_t look_ns = 10 * ms_ns;
// KILL cannot be refused, but a process inside the kernel can be slow to go, and one of another
// user's cannot be killed at all: after this we stop watching.
constexpr std::int64_t after_kill_ns = 5'000 * ms_ns;
// How long a lock is kept that is being given back, if the store does not answer half-way.
constexpr std::chrono::milliseconds release_ttl{5'000};

}  // namespace

guardian::guardian(int link, guarded_command command, const inherited_signals& inherited,
                   terminal& tty) noexcept
    : link_{link}, command_{std::move(command)}, inherited_{inherited}, tty_{tty} {}

// Not a session of its own: the command inherits ours, and must keep the terminal.
void guardian::detach_from_wrapper() {
  ::setpgid(0, 0);
  ::prctl(PR_SET_NAME, "holdfast-guard");
  for (const int number : {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGPIPE, SIGALRM,
                           SIGTSTP, SIGTTIN, SIGTTOU}) {
    ::signal(number, SIG_IGN);
  }
}

int guardian::run() {
  detach_from_wrapper();
  signal_queue children{inherited_signals{}, {SIGCHLD}};
  timer_ = ::timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
  if (timer_ < 0) return exit_code::internal;  // the wrapper sees our end close

  std::array<pollfd, 3> fds{{{link_, POLLIN, 0}, {children.fd(), POLLIN, 0}, {timer_, POLLIN, 0}}};
  while (!finished()) {
    arm_timer();
    if (orphaned_) fds[0].fd = -1;
    ::poll(fds.data(), fds.size(), -1);
    while (children.next()) {
    }
    if (!orphaned_ && !read_orders()) break;
    look_after_command();
    act();
  }
  // Not left to init: in a container that may be a program that reaps nothing.
  if (exited_) ::waitpid(child_, nullptr, WNOHANG);
  if (exited_ && !dismissed_ && !survived_) give_back();
  return exit_code::ok;
}

bool guardian::finished() {
  if (child_ == 0) return false;  // not started: read_orders() decides
  if (plan_.terminating() && exited_ && !gone_) {
    const bool tired = plan_.killed() && boottime_ns() > plan_.kill_at() + after_kill_ns;
    const bool alive = group_alive(child_);
    if (tired || !alive) {
      survived_ = alive;
      gone_ = true;
      tell(guard_report::kind::gone);
    }
  }
  return orphaned_ && exited_ && (gone_ || !plan_.terminating());
}

bool guardian::read_orders() {
  for (;;) {
    guard_order order;
    const ssize_t got = ::recv(link_, &order, sizeof order, MSG_DONTWAIT);
    if (got == static_cast<ssize_t>(sizeof order)) {
      obey(order);
    } else if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
      return true;
    } else {
      orphaned_ = true;
      if (child_ == 0) return false;
      plan_.abandon(boottime_ns(), abandoned_grace_ns);
      return true;
    }
  }
}

void guardian::obey(const guard_order& order) {
  switch (order.what) {
    case guard_order::kind::start:
      plan_.extend(order.term_at_ns, order.kill_at_ns);
      return start(order);
    case guard_order::kind::deadline:
      return plan_.extend(order.term_at_ns, order.kill_at_ns);
    case guard_order::kind::lost:
      if (exited_ && !plan_.terminating()) return tell(guard_report::kind::gone);
      return plan_.lose(boottime_ns(), order.kill_at_ns);
    case guard_order::kind::dismissed:
      dismissed_ = true;
      return;
  }
}

void guardian::start(const guard_order& order) {
  if (boottime_ns() >= order.term_at_ns) {  // we were kept from running for too long
    tell(guard_report::kind::terminating);
    return tell(guard_report::kind::gone);
  }
  const pid_t guard = ::getpid();
  const pid_t child = ::fork();
  if (child == 0) exec_command(order, guard);
  if (child < 0) {
    say(fmt::format("cannot start a process: {}", std::strerror(errno)));
    ::_exit(exit_code::internal);
  }
  ::setpgid(child, child);  // the child does it as well: either may come first
  child_ = child;
  holds_ = order.holds;
}

// Between fork and exec, of a process without threads.
void guardian::exec_command(const guard_order& order, pid_t guard) const {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != guard) ::_exit(exit_code::internal);
  ::setpgid(0, 0);
  // Not left to the guardian: were it stopped right after the fork, the wrapper would not know whom
  // to kill when the lock is lost.
  tell(guard_report::kind::forked, ::getpid());
  if (order.foreground) tty_.lend(::getpid());
  std::vector<told_lock> locks;
  for (std::size_t i = 0; i < command_.lock_names.size(); ++i)
    locks.push_back({command_.lock_names[i], order.holds.at(i).token, order.holds[i].told_token});
  set_lock_variables(locks);
  if (const char* const store = std::getenv("HOLDFAST_STORE");
      store != nullptr && !command_.keeps_password) {
    ::setenv("HOLDFAST_STORE", without_password(store).c_str(), 1);
  }
  inherited_.restore();

  std::vector<char*> argv;
  for (const std::string& word : command_.argv)
    argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  ::execvp(argv[0], argv.data());
  const int problem = errno;
  say(fmt::format("cannot run {}: {}", in_quotes(command_.argv.front()), std::strerror(problem)));
  ::_exit(problem == ENOENT ? exit_code::not_found : exit_code::not_executable);
}

void guardian::look_after_command() {
  if (child_ == 0 || exited_) return;
  siginfo_t info{};
  if (::waitid(P_PID, static_cast<id_t>(child_), &info, WSTOPPED | WNOHANG) == 0 &&
      info.si_pid == child_) {
    tell(guard_report::kind::stopped, info.si_status);
  }
  info = {};
  if (::waitid(P_PID, static_cast<id_t>(child_), &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
      info.si_pid != child_) {
    return;
  }
  exited_ = true;
  plan_.finish();
  const bool by_itself = info.si_code == CLD_EXITED;
  tell(guard_report::kind::exited,
       by_itself ? info.si_status : exit_code::signal_base + info.si_status,
       by_itself ? 0 : info.si_status);
}

void guardian::act() {
  if (child_ == 0) return;
  for (;;) {
    switch (plan_.due(boottime_ns())) {
      case guard_plan::step::wait:
        return;
      case guard_plan::step::terminate:
        signal_group(child_, SIGTERM);
        signal_group(child_, SIGCONT);  // one that is stopped would not see TERM
        tell(guard_report::kind::terminating);
        break;
      case guard_plan::step::kill:
        signal_group(child_, SIGKILL);
        break;
    }
  }
}

void guardian::arm_timer() const {
  std::int64_t at = plan_.next();
  if (plan_.terminating() && exited_ && !gone_) at = std::min(at, boottime_ns() + look_ns);
  itimerspec when{};
  if (at != guard_plan::never) {
    at = std::max<std::int64_t>(at, 1);  // zero would disarm it
    when.it_value = {at / 1'000'000'000, at % 1'000'000'000};
  }
  ::timerfd_settime(timer_, TFD_TIMER_ABSTIME, &when, nullptr);
}

// A client of its own: the wrapper's was made after the fork. Not tried for longer than a client's
// own limits: after that the locks end with their TTL.
void guardian::give_back() const noexcept {
  try {
    client store{command_.store};
    for (std::size_t i = 0; i < command_.lock_names.size(); ++i)
      give_back(store, i);
  } catch (const std::exception&) {
    // The store is away: nobody is left to be told.
  }
}

void guardian::give_back(client& store, std::size_t which) const {
  const auto& name = command_.lock_names[which];
  const auto& hold = holds_.at(which);
  try {
    named_lock lock{store, name, command_.choice, {.ttl = release_ttl, .renew = false}};
    lease held = lock.adopt({.name = name,
                             .owner = std::string{hold.owner.begin(), hold.owner.end()},
                             .token = fencing_token{hold.token}});
    static_cast<void>(held.release());
  } catch (const error& problem) {
    if (problem.code() != make_error_code(errc::lease_lost)) throw;  // it had ended before
  }
}

void guardian::tell(guard_report::kind what, int value, int signal) const {
  const guard_report report{what, value, signal};
  ::send(link_, &report, sizeof report, MSG_DONTWAIT | MSG_NOSIGNAL);
}

}  // namespace holdfast::cli
