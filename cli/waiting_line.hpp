// The line that tells a person at a terminal whom they are waiting for.
#pragma once

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

#include <holdfast/client.hpp>

namespace holdfast::cli {

// Shows who holds the lock on stderr, anew every few seconds, from a thread of its own, and wipes
// the line when destroyed. Says nothing for the first moment: most waits are short.
// Asks the store once per update, beside the wait itself, which keeps its place in the queue.
class waiting_line {
 public:
  waiting_line(client& client, std::string name);
  waiting_line(const waiting_line&) = delete;
  waiting_line& operator=(const waiting_line&) = delete;
  ~waiting_line();

 private:
  void run(const std::stop_token& stop);
  void show(const std::string& text);

  // Constant after construction.
  client& client_;
  const std::string name_;
  const bool rewrites_;  // the terminal can go back to the start of a line and clear it

  bool shown_ = false;
  std::mutex sleep_mutex_;
  std::condition_variable_any sleep_;
  std::jthread thread_;
};

}  // namespace holdfast::cli
