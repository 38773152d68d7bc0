#include "stores/local/detach.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>

// Everything that runs in the new process is marked with it, and makes system calls directly
// instead of through libc's functions: a sanitizer's (or a preloaded library's) version of those
// may take a lock that another thread held at the moment of the fork.
#define HOLDFAST_AFTER_FORK __attribute__((no_sanitize("thread")))

namespace holdfast::stores::local {

namespace {

template <class... Arguments>
HOLDFAST_AFTER_FORK long call(long number, Arguments... arguments) noexcept {
  return ::syscall(number, arguments...);
}

[[noreturn]] HOLDFAST_AFTER_FORK void leave(int status) noexcept {
  for (;;)
    call(SYS_exit_group, status);
}

HOLDFAST_AFTER_FORK void tell(const server_plan& plan, spawn_stage at, int error) noexcept {
  const spawn_report message{at, error, static_cast<int>(call(SYS_getpid))};
  call(SYS_write, plan.report, &message, sizeof message);
}

HOLDFAST_AFTER_FORK void close_between(unsigned first, unsigned last) noexcept {
  if (first > last || call(SYS_close_range, first, last, 0U) == 0) return;
  constexpr unsigned descriptors_max = 1U << 16U;  // Linux before 5.9 has no close_range
  for (unsigned fd = first; fd <= last && fd < descriptors_max; ++fd)
    call(SYS_close, fd);
}

// Tries for a second: a systemd-tmpfiles that ages /tmp holds a shared lock for a moment.
HOLDFAST_AFTER_FORK bool take_life_lock(int fd) noexcept {
  constexpr int tries = 100;
  const std::array<long, 2> ten_milliseconds{0, 10'000'000};
  for (int i = 0; i < tries; ++i) {
    if (call(SYS_flock, fd, LOCK_EX | LOCK_NB) == 0) return true;
    if (errno != EWOULDBLOCK && errno != EINTR) return false;
    call(SYS_nanosleep, &ten_milliseconds, nullptr);
  }
  return false;
}

HOLDFAST_AFTER_FORK void forget_callers_settings() noexcept {
  // A limit that the caller set for itself, like `ulimit -t`, would end the server of all.
  for (const int resource : {static_cast<int>(RLIMIT_CPU), static_cast<int>(RLIMIT_FSIZE),
                             static_cast<int>(RLIMIT_AS), static_cast<int>(RLIMIT_DATA)}) {
    std::uint64_t limit[2] = {0, 0};  // soft, hard
    if (call(SYS_prlimit64, 0, resource, nullptr, &limit) != 0) continue;
    limit[0] = limit[1];
    call(SYS_prlimit64, 0, resource, &limit, nullptr);
  }
  // Handlers end with exec by themselves; what was ignored would stay ignored. The kernel's struct
  // differs from libc's; all zero it means SIG_DFL.
  constexpr std::size_t set_size = 8;
  const std::uint64_t standard[8] = {};
  for (int number = 1; number <= 64; ++number) {
    call(SYS_rt_sigaction, number, &standard, nullptr, set_size);
  }
  call(SYS_rt_sigprocmask, SIG_SETMASK, &standard, nullptr, set_size);
  call(SYS_umask, 077);
}

[[noreturn]] HOLDFAST_AFTER_FORK void become_server(const server_plan& plan) noexcept {
  constexpr int life = 3;
  const long nothing = call(SYS_openat, AT_FDCWD, "/dev/null", O_RDWR | O_CLOEXEC, 0);
  // dup3 refuses to copy a descriptor onto itself, where dup2 would leave it to be closed by exec.
  for (const int standard : {STDIN_FILENO, STDOUT_FILENO}) {
    if (nothing == standard) {
      call(SYS_fcntl, standard, F_SETFD, 0);
    } else {
      call(SYS_dup3, nothing, standard, 0);
    }
  }
  call(SYS_dup3, plan.log, STDERR_FILENO, 0);  // for what Redis says before it has read its options
  // The server process itself takes the life lock, on a description that no other process can
  // share: the lock ends with the server, neither earlier nor later.
  if (call(SYS_fchdir, plan.folder) != 0) leave(1);
  const long folder = call(SYS_openat, AT_FDCWD, ".", O_RDONLY | O_DIRECTORY, 0);
  if (folder < 0 || (folder != life && call(SYS_dup3, folder, life, 0) != life)) leave(1);
  close_between(life + 1, static_cast<unsigned>(plan.report) - 1);
  close_between(static_cast<unsigned>(plan.report) + 1, ~0U);
  if (!take_life_lock(life)) {
    tell(plan, spawn_stage::folder_busy, errno);
    leave(1);
  }
  tell(plan, spawn_stage::locked, 0);
  forget_callers_settings();
  call(SYS_execve, plan.binary, plan.arguments, plan.environment);
  tell(plan, spawn_stage::not_executed, errno);
  leave(1);
}

// fork() without a signal at the child's end: a program that embeds us neither gets a SIGCHLD for
// a child that it does not know, nor takes its status away from us with wait(), nor has its
// pthread_atfork handlers run.
HOLDFAST_AFTER_FORK pid_t quiet_fork() noexcept {
  return static_cast<pid_t>(call(SYS_clone, 0L, nullptr, nullptr, nullptr, nullptr));
}

// Two generations: the second is an orphan at once, so init reaps it and we leave no zombie; and
// not being a leader of its session, it never acquires a terminal.
HOLDFAST_AFTER_FORK pid_t fork_twice(const server_plan& plan) noexcept {
  const pid_t child = quiet_fork();
  if (child != 0) return child;
  call(SYS_setsid);
  const pid_t server = quiet_fork();
  if (server == 0) become_server(plan);
  leave(server > 0 ? 0 : 1);
}

}  // namespace

bool spawn_detached(const server_plan& plan) noexcept {
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);  // no handler of the caller runs in the child
  const pid_t child = fork_twice(plan);
  const int error = errno;
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  errno = error;
  if (child < 0) return false;
  int status = 1;
  while (::waitpid(child, &status, __WALL) < 0 && errno == EINTR) {
  }
  errno = EAGAIN;
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace holdfast::stores::local
