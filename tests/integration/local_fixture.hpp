// Local servers in a folder of the test's own, never the developer's. They are daemons, so a
// watcher process kills them also when the test program crashes.
#pragma once

#include <dirent.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <climits>
#include <csignal>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/clock.hpp"
#include "stores/local/local_server.hpp"
#include "support/process.hpp"
#include "support/raw_redis.hpp"
#include "support/temp_dir.hpp"

namespace holdfast::test {

// Server processes whose working folder is (or was, if it is deleted) `root` or below it.
inline std::vector<pid_t> servers_in(const std::string& root) {
  std::vector<pid_t> found;
  DIR* const all = ::opendir("/proc");
  while (const dirent* const entry = all != nullptr ? ::readdir(all) : nullptr) {
    const pid_t pid = std::atoi(entry->d_name);
    char cwd[PATH_MAX];
    const std::string link = std::string{"/proc/"} + entry->d_name + "/cwd";
    const ssize_t length = pid > 0 ? ::readlink(link.c_str(), cwd, sizeof cwd) : -1;
    if (length <= 0) continue;
    const std::string_view path{cwd, static_cast<std::size_t>(length)};
    if (path.starts_with(root + "/")) found.push_back(pid);
  }
  if (all != nullptr) ::closedir(all);
  return found;
}

// Kills and removes what is left in `root` once this object, or the whole test program, is gone.
class watcher {
 public:
  explicit watcher(const std::string& root) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error{"pipe2"};
    pid_ = ::fork();
    if (pid_ == 0) {
      ::dup2(ends[0], 0);
      ::close_range(1, ~0U, 0);  // nobody waits for the watcher's output either
      ::setsid();
      char byte = 0;
      while (::read(0, &byte, 1) < 0 && errno == EINTR) {
      }
      // Twice: one might have been between its two forks.
      for (int i = 0; i < 2; ++i) {
        for (const pid_t pid : servers_in(root))
          ::kill(pid, SIGKILL);
        nap();
      }
      std::error_code ignored;
      std::filesystem::remove_all(root, ignored);
      ::_exit(0);
    }
    ::close(ends[0]);
    end_ = ends[1];
  }
  watcher(const watcher&) = delete;
  watcher& operator=(const watcher&) = delete;
  ~watcher() {
    ::close(end_);
    ::waitpid(pid_, nullptr, 0);
  }

 private:
  pid_t pid_ = -1;
  int end_ = -1;
};

class LocalServer : public ::testing::Test {
 protected:
  using local_server = stores::local::local_server;

  static core::time_point in(core::duration wait) { return core::after(runtime::now(), wait); }
  static core::time_point soon() { return in(patience); }

  [[nodiscard]] std::string root() const { return temp_.path().string(); }
  [[nodiscard]] std::string folder() const { return temp_.file("f"); }
  [[nodiscard]] std::string file(const std::string& name) const { return folder() + "/" + name; }
  [[nodiscard]] std::vector<pid_t> servers() const { return servers_in(root()); }

  [[nodiscard]] ::testing::AssertionResult ensured(core::duration wait = patience) const {
    auto done = local_server{folder()}.ensure_running(in(wait));
    if (done) return ::testing::AssertionSuccess();
    return ::testing::AssertionFailure() << done.error().message;
  }
  // How it fails; empty code if it does not.
  [[nodiscard]] failure refused(core::duration wait = patience) const {
    auto done = local_server{folder()}.ensure_running(in(wait));
    return done ? failure{} : done.error();
  }
  [[nodiscard]] pid_t server_pid() const {
    auto seen = local_server{folder()}.status();
    return seen ? static_cast<pid_t>(seen->pid) : 0;
  }
  void kill_server() const {
    const pid_t pid = server_pid();
    ASSERT_GT(pid, 0);
    ::kill(pid, SIGKILL);
    ASSERT_TRUE(eventually([&] { return !alive(pid); }));
  }
  [[nodiscard]] std::string ask(const std::vector<std::string>& words) const {
    return raw_redis{{.socket_path = file("redis.sock")}}.command(words).shown();
  }
  // Runs `body` in a forked process; its exit status is 0 if it returns true.
  template <class Body>
  static pid_t in_process(Body body) {
    const pid_t pid = ::fork();
    if (pid == 0) ::_exit(body() ? 0 : 1);
    return pid;
  }
  static bool succeeded(pid_t pid) {
    int status = 0;
    while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }

 private:
  temp_dir temp_;
  watcher watcher_{temp_.path().string()};
};

}  // namespace holdfast::test
