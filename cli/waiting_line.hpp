// The line that says what a wait is for.
#pragma once

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "lock_set.hpp"

namespace holdfast::cli {

// Says on stderr who holds the lock (of several, the first that another has), or that the store is
// away, from a thread of its own. On a
// terminal anew every few seconds, and wipes the line when destroyed; elsewhere each of the two
// once. Says nothing for the first moment: most waits are short.
// Asks the store once per update and lock, beside the wait itself, which keeps its place in the
// queue.
class waiting_line {
 public:
  explicit waiting_line(lock_set& locks);
  waiting_line(const waiting_line&) = delete;
  waiting_line& operator=(const waiting_line&) = delete;
  ~waiting_line();

 private:
  void run(const std::stop_token& stop);
  enum class kind : unsigned char { none, held, away };
  [[nodiscard]] std::pair<kind, std::string> look();
  void show(kind what, const std::string& text);

  // Constant after construction.
  lock_set& locks_;
  const bool rewrites_;  // the terminal can go back to the start of a line and clear it

  bool shown_ = false;
  bool said_held_ = false;
  bool said_away_ = false;
  std::mutex sleep_mutex_;
  std::condition_variable_any sleep_;
  std::jthread thread_;
};

}  // namespace holdfast::cli
