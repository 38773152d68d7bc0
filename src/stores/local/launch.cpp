#include "stores/local/launch.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/syscall.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <system_error>
#include <vector>

#include "runtime/clock.hpp"
#include "runtime/socket.hpp"
#include "stores/local/detach.hpp"
#include "stores/local/folder.hpp"

namespace holdfast::stores::local {

namespace {

std::vector<std::string> server_arguments(const std::string& binary,
                                          const std::string& socket_path) {
  return {binary, "--port", "0", "--unixsocket", socket_path, "--unixsocketperm", "700",
          "--daemonize", "no", "--pidfile", pid_file, "--logfile", log_file, "--loglevel",
          "warning", "--databases", "1", "--maxmemory-policy", "noeviction",
          // Redis writes the file before it sends the replies, so whatever was answered is in the
          // page cache and survives the server's death. A host that dies takes every holder with
          // it, so waiting for the disk would buy nothing.
          "--save", "", "--appendonly", "yes", "--appendfsync", "no", "--auto-aof-rewrite-min-size",
          "4mb",
          // Instead of enable-debug-command, which Redis 6 does not know.
          "--rename-command", "DEBUG", ""};
}

std::vector<char*> pointers(std::vector<std::string>& words) {
  std::vector<char*> all;
  all.reserve(words.size() + 1);
  for (std::string& word : words)
    all.push_back(word.data());
  all.push_back(nullptr);
  return all;
}

// Out of the way of the standard descriptors, which may be closed in our process.
runtime::unique_fd raised(const runtime::unique_fd& fd) noexcept {
  constexpr int lowest = 10;
  return runtime::unique_fd{fd ? ::fcntl(fd.get(), F_DUPFD_CLOEXEC, lowest) : -1};
}

tl::unexpected<failure> cannot_start(const char* what, int error) {
  return fail(errc::store_unreachable, std::string{"local: cannot start the server: "} + what +
                                           ": " + std::generic_category().message(error));
}

}  // namespace

runtime::unique_fd open_process(std::int64_t pid) noexcept {
  return runtime::unique_fd{pid > 0 ? static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)) : -1};
}

bool launched::ended() const noexcept {
  if (!pidfd_) return ::kill(static_cast<pid_t>(pid_), 0) != 0 && errno == ESRCH;
  return runtime::wait_ready(pidfd_.get(), POLLIN, core::time_point{}) == runtime::readiness::ready;
}

int launched::exec_error() const noexcept {
  pollfd readable{report_.get(), POLLIN, 0};
  spawn_report last{};
  if (::poll(&readable, 1, 0) <= 0 || ::read(report_.get(), &last, sizeof last) != sizeof last) {
    return 0;
  }
  return last.at == spawn_stage::not_executed ? last.error : 0;
}

result<std::optional<launched>> launch_server(const std::string& binary, int folder,
                                              const std::string& socket_path,
                                              core::time_point until) {
  std::vector<std::string> words = server_arguments(binary, socket_path);
  std::vector<std::string> settings{"PATH=/usr/local/bin:/usr/bin:/bin", "LC_ALL=C", "TZ=UTC"};
  const std::vector<char*> arguments = pointers(words);
  const std::vector<char*> environment = pointers(settings);

  // Emptied at every start: that is what bounds it.
  const runtime::unique_fd log{::openat(
      folder, log_file, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600)};
  if (!log) return cannot_start("its log file", errno);
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return cannot_start("pipe", errno);
  runtime::unique_fd reports{ends[0]};
  runtime::unique_fd speak{ends[1]};
  {
    const runtime::unique_fd high_log = raised(log);
    const runtime::unique_fd high_speak = raised(speak);
    const runtime::unique_fd high_folder{::fcntl(folder, F_DUPFD_CLOEXEC, 10)};
    if (!high_log || !high_speak || !high_folder) return cannot_start("descriptors", errno);
    const server_plan plan{binary.c_str(),    arguments.data(), environment.data(),
                           high_folder.get(), high_log.get(),   high_speak.get()};
    if (!spawn_detached(plan)) return cannot_start("fork", errno);
  }
  speak.reset();

  spawn_report first{};
  if (runtime::wait_ready(reports.get(), POLLIN, until) != runtime::readiness::ready ||
      ::read(reports.get(), &first, sizeof first) != sizeof first) {
    return cannot_start("the new process", ETIMEDOUT);
  }
  if (first.at != spawn_stage::locked) return std::nullopt;
  return launched{first.pid, open_process(first.pid), std::move(reports)};
}

}  // namespace holdfast::stores::local
