#include "process_group.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cctype>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <memory>

namespace holdfast::cli {
namespace {

constexpr int look_again_ms = 5;
// At once; the rest have their turn a moment later.
constexpr int reaped_max = 1024;

struct close_folder {
  void operator()(DIR* folder) const { ::closedir(folder); }
};

bool is_live_member(int proc, const char* pid, pid_t group) {
  std::array<char, 32> path{};
  std::snprintf(path.data(), path.size(), "%.20s/stat", pid);
  const int fd = ::openat(proc, path.data(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  std::array<char, 1024> text{};
  const ssize_t got = ::read(fd, text.data(), text.size() - 1);
  ::close(fd);
  if (got <= 0) return false;
  // pid (name) state ppid pgrp … threads is the 18th after the name, which may hold anything.
  const char* after_name = std::strrchr(text.data(), ')');
  if (after_name == nullptr) return false;
  char state = 0;
  int member_of = 0;
  long threads = 0;
  if (std::sscanf(after_name + 1,
                  " %c %*d %d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %ld", &state,
                  &member_of, &threads) != 3) {
    return false;
  }
  // A process whose first thread has ended looks like a zombie while its other threads run.
  const bool dead = (state == 'Z' || state == 'X') && threads <= 1;
  return member_of == group && !dead;
}

}  // namespace

std::int64_t boottime_ns() noexcept {
  timespec now{};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

bool group_alive(pid_t group) {
  const std::unique_ptr<DIR, close_folder> proc{::opendir("/proc")};
  if (!proc) return true;
  bool saw_any = false;
  while (const dirent* entry = ::readdir(proc.get())) {
    if (std::isdigit(static_cast<unsigned char>(entry->d_name[0])) == 0) continue;
    saw_any = true;
    if (is_live_member(::dirfd(proc.get()), entry->d_name, group)) return true;
  }
  return !saw_any;
}

void signal_group(pid_t group, int number) noexcept {
  if (group > 1) ::kill(-group, number);
}

void reap_orphans(pid_t own) noexcept {
  for (int reaped = 0; reaped < reaped_max; ++reaped) {
    siginfo_t info{};
    if (::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0) return;
    if (info.si_pid == 0 || info.si_pid == own) return;
    ::waitpid(info.si_pid, nullptr, WNOHANG);
  }
}

bool wait_group_gone(pid_t group, int limit_ms) {
  const std::int64_t until = boottime_ns() + std::int64_t{limit_ms} * 1'000'000;
  while (group_alive(group)) {
    if (boottime_ns() >= until) return false;
    ::poll(nullptr, 0, look_again_ms);
  }
  return true;
}

}  // namespace holdfast::cli
