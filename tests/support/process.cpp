#include "support/process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <system_error>
#include <thread>
#include <utility>

namespace holdfast::test {
namespace {

using clock = std::chrono::steady_clock;

[[noreturn]] void throw_errno(const char* what) {
  throw std::system_error{errno, std::generic_category(), what};
}

std::array<int, 2> make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw_errno("pipe2");
  return ends;
}

// A chroot often has no /dev/pts. Root can have an instance of its own that is mounted nowhere.
int open_private_pty() {
  const int type = ::fsopen("devpts", FSOPEN_CLOEXEC);
  if (type < 0) throw_errno("no /dev/pts, and no right to make one: run the tests where ptys work");
  ::fsconfig(type, FSCONFIG_SET_STRING, "ptmxmode", "0666", 0);
  if (::fsconfig(type, FSCONFIG_CMD_CREATE, nullptr, nullptr, 0) != 0) throw_errno("devpts");
  const int instance = ::fsmount(type, FSMOUNT_CLOEXEC, 0);
  if (instance < 0) throw_errno("fsmount devpts");
  const int master = ::openat(instance, "ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
  ::close(instance);
  ::close(type);
  return master;
}

std::array<int, 2> make_pty() {
  int master = ::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (master < 0) master = open_private_pty();
  if (master < 0 || ::unlockpt(master) != 0) throw_errno("open a pty");
  const int slave = ::ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (slave < 0) throw_errno("open the other side of a pty");
  return {master, slave};
}

void close_fd(int& fd) {
  if (fd >= 0) ::close(fd);
  fd = -1;
}

std::vector<std::string> environment(const process_options& options) {
  std::vector<std::string> all;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text{*entry};
    if (!options.env.contains(std::string{text.substr(0, text.find('='))})) all.emplace_back(text);
  }
  for (const auto& [name, value] : options.env) {
    if (value) all.push_back(name + "=" + *value);
  }
  return all;
}

std::vector<char*> pointers(std::vector<std::string>& strings) {
  std::vector<char*> result;
  for (std::string& text : strings)
    result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

// Appends what can be read without waiting; closes the descriptor at its end.
void drain(int& fd, std::string& into) {
  std::array<char, 16384> buffer{};
  while (fd >= 0) {
    const ssize_t got = ::read(fd, buffer.data(), buffer.size());
    if (got > 0) {
      into.append(buffer.data(), static_cast<std::size_t>(got));
    } else if (got < 0 && errno == EINTR) {
      continue;
    } else if (got < 0 && errno == EAGAIN) {
      return;
    } else {
      close_fd(fd);  // end of file; EIO is how a terminal says so
    }
  }
}

// A child that has closed its stdin must not kill the test, nor the test change how SIGPIPE is
// handled: the library under test is checked for not raising it.
class sigpipe_blocked {
 public:
  sigpipe_blocked() {
    ::sigemptyset(&pipe_);
    ::sigaddset(&pipe_, SIGPIPE);
    ::pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  sigpipe_blocked(const sigpipe_blocked&) = delete;
  sigpipe_blocked& operator=(const sigpipe_blocked&) = delete;
  ~sigpipe_blocked() {
    const timespec now{};
    ::sigtimedwait(&pipe_, nullptr, &now);
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }

 private:
  sigset_t pipe_{};
  sigset_t before_{};
};

}  // namespace

child_process::child_process(process_options options) {
  if (options.args.empty()) throw std::invalid_argument{"child_process needs a program"};
  std::vector<std::string> env = environment(options);
  const std::vector<char*> argv = pointers(options.args);
  const std::vector<char*> envp = pointers(env);

  std::array<int, 3> theirs{};
  if (options.pty) {
    const auto [master, slave] = make_pty();
    out_ = master;
    in_ = ::fcntl(master, F_DUPFD_CLOEXEC, 3);
    theirs = {slave, slave, slave};
  } else {
    const auto in = make_pipe();
    const auto out = make_pipe();
    const auto err = make_pipe();
    theirs = {in[0], out[1], err[1]};
    in_ = in[1];
    out_ = out[0];
    err_ = err[0];
    ::fcntl(err_, F_SETFL, O_NONBLOCK);
  }
  ::fcntl(out_, F_SETFL, O_NONBLOCK);

  const pid_t parent = ::getpid();
  pid_ = ::fork();
  if (pid_ < 0) throw_errno("fork");
  if (pid_ == 0) {
    const int fds[3] = {theirs[0], theirs[1], theirs[2]};
    exec_child(options, argv.data(), envp.data(), fds, parent);
  }
  for (std::size_t i = 0; i < theirs.size(); ++i) {
    if (!options.pty || i == 0) ::close(theirs[i]);
  }
  pidfd_ = static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0));
  if (pidfd_ < 0) throw_errno("pidfd_open");
}

// Runs in the forked child, perhaps of a program with threads: system calls only.
void child_process::exec_child(const process_options& options, char* const* argv, char* const* envp,
                               const int (&fds)[3], int parent) const {
  if (options.pty) {
    ::setsid();
    ::ioctl(fds[0], TIOCSCTTY, 0);
  }
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(125);
  for (int i = 0; i < 3; ++i) {
    if (::dup2(fds[i], i) < 0) ::_exit(125);
  }
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  for (const int number : {SIGPIPE, SIGINT, SIGQUIT, SIGHUP})
    ::signal(number, SIG_DFL);
  if (!options.cwd.empty() && ::chdir(options.cwd.c_str()) != 0) ::_exit(125);
  ::execvpe(argv[0], argv, envp);
  ::_exit(127);
}

child_process::~child_process() {
  if (!exit_ && pid_ > 0) {
    ::kill(pid_, SIGKILL);
    while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  for (int* fd : {&pidfd_, &in_, &out_, &err_})
    close_fd(*fd);
}

bool child_process::poll_exit() {
  if (exit_) return true;
  int status = 0;
  if (::waitpid(pid_, &status, WNOHANG) != pid_) return false;
  exit_ = WIFSIGNALED(status) ? exit_status{true, WTERMSIG(status)}
                              : exit_status{false, WEXITSTATUS(status)};
  return true;
}

void child_process::pump(std::chrono::nanoseconds timeout) {
  std::array<pollfd, 3> fds{{{out_, POLLIN, 0}, {err_, POLLIN, 0}, {pidfd_, POLLIN, 0}}};
  if (exit_) fds[2].fd = -1;
  const auto ms = std::chrono::ceil<std::chrono::milliseconds>(timeout).count();
  ::poll(fds.data(), fds.size(), static_cast<int>(std::clamp<std::int64_t>(ms, 0, 60'000)));
  poll_exit();  // before reading: what it wrote before it ended is then all there
  drain(out_, out_text_);
  drain(err_, err_text_);
}

std::optional<exit_status> child_process::wait_exit(std::chrono::nanoseconds timeout) {
  const auto until = clock::now() + timeout;
  while (!exit_) {
    const auto left = until - clock::now();
    pump(left);
    if (left <= left.zero()) break;
  }
  return exit_;
}

bool child_process::wait_for_output(std::string_view text, std::chrono::nanoseconds timeout) {
  const auto until = clock::now() + timeout;
  pump(std::chrono::nanoseconds::zero());
  for (;;) {
    if (out_text_.find(text) != std::string::npos) return true;
    if (err_text_.find(text) != std::string::npos) return true;
    const auto left = until - clock::now();
    if (exit_ || left <= left.zero()) return false;
    pump(left);
  }
}

void child_process::signal(int number) const {
  if (!exit_) ::kill(pid_, number);
}

void child_process::write_stdin(std::string_view text) {
  const sigpipe_blocked quiet;
  while (in_ >= 0 && !text.empty()) {
    const ssize_t put = ::write(in_, text.data(), text.size());
    if (put < 0 && errno == EPIPE) return;  // it has closed its stdin: its affair
    if (put < 0 && errno == EINTR) continue;
    if (put < 0 && errno == EAGAIN) {
      nap();
      continue;
    }
    if (put < 0) throw_errno("write to the child's stdin");
    text.remove_prefix(static_cast<std::size_t>(put));
  }
}

void child_process::close_stdin() { close_fd(in_); }

const std::string& child_process::stdout_text() {
  pump(std::chrono::nanoseconds::zero());
  return out_text_;
}

const std::string& child_process::stderr_text() {
  pump(std::chrono::nanoseconds::zero());
  return err_text_;
}

run_result run_program(process_options options, std::string_view input,
                       std::chrono::nanoseconds timeout) {
  child_process child{std::move(options)};
  child.write_stdin(input);
  child.close_stdin();
  const auto ended = child.wait_exit(timeout);
  return {ended, child.stdout_text(), child.stderr_text()};
}

bool alive(pid_t pid) {
  std::ifstream stat{"/proc/" + std::to_string(pid) + "/stat"};
  std::string text;
  if (!std::getline(stat, text)) return false;
  const auto end_of_name = text.rfind(')');
  return end_of_name != std::string::npos && end_of_name + 2 < text.size() &&
         text[end_of_name + 2] != 'Z' && text[end_of_name + 2] != 'X';
}

void nap() { std::this_thread::sleep_for(std::chrono::milliseconds{5}); }

}  // namespace holdfast::test
