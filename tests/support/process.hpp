// A program under test, driven as a person would: started, fed, watched, signalled, awaited.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <csignal>
#include <map>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::test {

// Generous on purpose: a test waits for an event and only a failing one waits this long.
inline constexpr std::chrono::seconds patience{30};

struct exit_status {
  bool signalled = false;  ///< ended by a signal
  int code = 0;            ///< the exit status, or the signal's number
  friend bool operator==(const exit_status&, const exit_status&) = default;
  friend std::ostream& operator<<(std::ostream& out, const exit_status& status) {
    return out << (status.signalled ? "signal " : "exit ") << status.code;
  }
};

struct process_options {
  std::vector<std::string> args{};  ///< args[0] is the program, looked up in PATH
  std::map<std::string, std::optional<std::string>> env{};  ///< on top of ours; empty: unset
  std::string cwd{};
  bool pty = false;  ///< a session and terminal of its own; all it writes is stdout_text()
};

// A child process with its three standard streams on pipes (or one terminal). Not thread-safe:
// output is read inside the waiting and *_text() calls, so a child that writes more than a pipe
// holds waits until one of them is called. The child dies with the thread that started it, and is
// killed and reaped in the destructor. (Only itself: its own children are the test's affair.)
class child_process {
 public:
  explicit child_process(process_options options);
  explicit child_process(std::vector<std::string> args)
      : child_process{process_options{.args = std::move(args)}} {}
  child_process(const child_process&) = delete;
  child_process& operator=(const child_process&) = delete;
  ~child_process();

  [[nodiscard]] pid_t pid() const noexcept { return pid_; }

  // Empty: still running. Once it has exited, everything it wrote is in the texts below.
  std::optional<exit_status> wait_exit(std::chrono::nanoseconds timeout = patience);

  // True once stdout or stderr holds `text`; false after the timeout, or when it has exited
  // without writing it.
  bool wait_for_output(std::string_view text, std::chrono::nanoseconds timeout = patience);

  void signal(int number) const;

  void write_stdin(std::string_view text);
  void close_stdin();

  [[nodiscard]] const std::string& stdout_text();
  [[nodiscard]] const std::string& stderr_text();

 private:
  [[noreturn]] void exec_child(const process_options& options, char* const* argv, char* const* envp,
                               const int (&fds)[3], int parent) const;
  // Reads what there is, waiting up to `timeout` for something to happen.
  void pump(std::chrono::nanoseconds timeout);
  bool poll_exit();

  pid_t pid_ = -1;
  int pidfd_ = -1;
  int in_ = -1;
  int out_ = -1;
  int err_ = -1;
  std::string out_text_;
  std::string err_text_;
  std::optional<exit_status> exit_;
};

struct run_result {
  std::optional<exit_status> exit;  ///< empty: did not end in time and was killed
  std::string out;
  std::string err;
};

// Starts a program with `input` as its stdin and waits for its end.
run_result run_program(process_options options, std::string_view input = {},
                       std::chrono::nanoseconds timeout = patience);

// Waits until `done()` is true, looking every few milliseconds: for state nobody can wait for.
template <class Predicate>
bool eventually(Predicate done, std::chrono::nanoseconds timeout = patience);

// True while the process exists and is not a zombie.
[[nodiscard]] bool alive(pid_t pid);

void nap();  // a few milliseconds, between two looks

template <class Predicate>
bool eventually(Predicate done, std::chrono::nanoseconds timeout) {
  const auto until = std::chrono::steady_clock::now() + timeout;
  while (!done()) {
    if (std::chrono::steady_clock::now() >= until) return done();
    nap();
  }
  return true;
}

}  // namespace holdfast::test
