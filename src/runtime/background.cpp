#include "runtime/background.hpp"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "runtime/clock.hpp"

namespace holdfast::runtime {

struct background::shared : std::enable_shared_from_this<shared> {
  explicit shared(std::size_t most) : threads_max{most} {}

  const std::size_t threads_max;
  std::mutex m;
  std::condition_variable changed;
  // Protected by m.
  std::deque<task> ready;
  std::multimap<core::time_point, task> later;
  std::vector<std::thread> threads;
  std::size_t idle = 0;
  bool stopping = false;

  // One thread for each task that waits, and one to watch the clock. True if any thread is there.
  bool ensure_threads() {
    const bool wanted = idle < ready.size() || (idle == 0 && !later.empty()) || threads.empty();
    if (wanted && threads.size() < threads_max) {
      try {
        threads.emplace_back([self = shared_from_this()] { self->work(); });
      } catch (const std::system_error&) {
        return !threads.empty();  // those that are there will get to it
      }
    }
    return !threads.empty();
  }

  void take_due() {
    const auto current = now();
    while (!later.empty() && later.begin()->first <= current) {
      ready.push_back(std::move(later.begin()->second));
      later.erase(later.begin());
    }
  }

  void work() {
    std::unique_lock lock{m};
    while (!stopping) {
      take_due();
      if (!ready.empty()) {
        auto next = std::move(ready.front());
        ready.pop_front();
        ensure_threads();
        // We may have been the one that watched the clock, or have taken up more than we can do.
        if (!ready.empty() || !later.empty()) changed.notify_one();
        lock.unlock();
        next();
        next = nullptr;  // what the task held may be destroyed here, and may call us
        lock.lock();
        continue;
      }
      ++idle;
      if (later.empty()) {
        changed.wait(lock);
      } else {
        changed.wait_for(
            lock, std::clamp<core::duration>(later.begin()->first - now(), core::duration::zero(),
                                             std::chrono::hours{24}));
      }
      --idle;
    }
  }
};

background::background(std::size_t threads_max) : shared_{std::make_shared<shared>(threads_max)} {}

background::~background() { stop(); }

void background::stop() {
  std::vector<std::thread> threads;
  std::deque<task> dropped;
  std::multimap<core::time_point, task> dropped_later;
  {
    const std::lock_guard guard{shared_->m};
    shared_->stopping = true;
    threads.swap(shared_->threads);
    dropped.swap(shared_->ready);
    dropped_later.swap(shared_->later);
  }
  shared_->changed.notify_all();
  for (auto& one : threads) {
    if (one.get_id() == std::this_thread::get_id()) {
      one.detach();
    } else {
      one.join();
    }
  }
}

bool background::start() {
  const std::lock_guard guard{shared_->m};
  if (shared_->stopping) return false;
  return !shared_->threads.empty() || shared_->ensure_threads();
}

bool background::run(task work) {
  const std::lock_guard guard{shared_->m};
  if (shared_->stopping || shared_->ready.size() >= queue_max) return false;
  shared_->ready.push_back(std::move(work));
  if (!shared_->ensure_threads()) {
    shared_->ready.pop_back();
    return false;
  }
  shared_->changed.notify_one();
  return true;
}

void background::run_always(task work) {
  const std::lock_guard guard{shared_->m};
  if (shared_->stopping) return;
  shared_->ready.push_back(std::move(work));
  // Without a thread it waits for the next attempt to start one.
  static_cast<void>(shared_->ensure_threads());
  shared_->changed.notify_one();
}

bool background::run_at(core::time_point when, task work) {
  const std::lock_guard guard{shared_->m};
  if (shared_->stopping || shared_->later.size() >= queue_max) return false;
  const auto added = shared_->later.emplace(when, std::move(work));
  if (!shared_->ensure_threads()) {
    shared_->later.erase(added);
    return false;
  }
  // A sleeping thread needs to hear of it only if it would sleep too long.
  if (added == shared_->later.begin()) shared_->changed.notify_one();
  return true;
}

}  // namespace holdfast::runtime
