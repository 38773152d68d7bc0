// A few threads for what must not run on a caller's or the renewing thread: stop callbacks,
// observers, releases that have to be tried again.
#pragma once

#include <functional>
#include <memory>

#include "core/types.hpp"

namespace holdfast::runtime {

// Thread-safe. Threads start when there is work and all others are busy, so that one callback that
// blocks does not keep the next from running; `threads_max` of them at most. An idle one sleeps.
class background {
 public:
  static constexpr std::size_t threads_max = 4;
  // Beyond it work is refused: whoever floods us hears of it instead of growing memory.
  static constexpr std::size_t queue_max = 16 * 1024;

  using task = std::function<void()>;

  background();
  background(const background&) = delete;
  background& operator=(const background&) = delete;
  ~background();

  // Drops what has not begun and waits for what has; from one of its own threads it does not wait
  // for itself. Nothing runs afterwards. The owner calls it, because tasks may keep this alive.
  void stop();

  // False if the queue is full or no thread could be started. Tasks must not throw.
  [[nodiscard]] bool run(task work);
  // For what must not be dropped and is bounded by its source, as the loss of a lease is.
  void run_always(task work);
  [[nodiscard]] bool run_at(core::time_point when, task work);

 private:
  struct shared;
  std::shared_ptr<shared> shared_;
};

}  // namespace holdfast::runtime
