// A few threads for what must not run on a caller's or the renewing thread: stop callbacks,
// observers, releases that have to be tried again.
#pragma once

#include <functional>
#include <memory>

#include "core/types.hpp"

namespace holdfast::runtime {

// Thread-safe. Threads start when there is work and all others are busy, so that one task that
// blocks does not keep the next from running, up to a number given at the start. Idle ones sleep.
// Work of different urgency belongs to different pools: what waits here waits for its like only.
class background {
 public:
  // Beyond it work is refused: a caller that floods us is told, and memory does not grow.
  static constexpr std::size_t queue_max = 16 * 1024;

  using task = std::function<void()>;

  explicit background(std::size_t threads_max);
  background(const background&) = delete;
  background& operator=(const background&) = delete;
  ~background();

  // Drops what has not begun and waits for what has; from one of its own threads it does not wait
  // for itself. Nothing runs afterwards. The owner calls it, because tasks may keep this alive.
  void stop();

  // Starts the first thread now, for what must not fail for want of one later.
  [[nodiscard]] bool start();

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
