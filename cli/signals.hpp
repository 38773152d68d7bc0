// Signals as a queue to read from. Blocked before any thread is started, so that none of the
// library's threads ever sees one.
#pragma once

#include <csignal>
#include <initializer_list>
#include <optional>

namespace holdfast::cli {

// How signals were set up when we were started: a command we run gets the same. (`nohup` and shells
// without job control start programs with signals ignored, and expect that to be passed on.)
class inherited_signals {
 public:
  inherited_signals();
  [[nodiscard]] bool ignored(int number) const { return ::sigismember(&ignored_, number) == 1; }
  // For a child that is about to exec; system calls only.
  void restore() const;

 private:
  sigset_t mask_{};
  sigset_t ignored_{};
};

// Collects the signals named, but for those that were ignored when we were started.
// Reading is thread-safe; construction must come before the first thread.
class signal_queue {
 public:
  signal_queue(const inherited_signals& inherited, std::initializer_list<int> numbers);
  signal_queue(const signal_queue&) = delete;
  signal_queue& operator=(const signal_queue&) = delete;
  ~signal_queue();

  [[nodiscard]] int fd() const noexcept { return fd_; }
  [[nodiscard]] std::optional<int> next();  // empty: none waits

 private:
  int fd_ = -1;
};

// Those that end a wait for the lock.
[[nodiscard]] bool ends_a_wait(int number) noexcept;

// Those by which a person at the keyboard ends a program. A shell that runs a script goes on with
// the next command unless the program is seen to die of them.
[[nodiscard]] bool is_from_keyboard(int number) noexcept;

// A signal that this process dies of, and whether the others of its group get it as well: while a
// command has the terminal, Ctrl-C reaches the command alone, and not the script it belongs to.
struct death {
  int number = 0;  ///< zero: none
  bool whole_group = false;
};

// Returns only if the signal does not end this process. Leaves no core file.
void die_of(const death& how) noexcept;

// Stops this process as Ctrl-Z does, and returns when it is continued. Where there is no shell to
// continue it (an orphaned process group) the kernel does not stop it, and it returns at once.
void stop_like_the_terminal();

}  // namespace holdfast::cli
