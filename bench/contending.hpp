// What a worker does that wants a lock which others want as well.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <thread>

#include <holdfast/holdfast.hpp>

#include "workers.hpp"

namespace holdfast::bench {

// One worker: takes and gives back the lock until told to stop.
template <class Lock, class Unlock>
void contend(shared_board& all, int me, std::chrono::microseconds hold, bool sampling, Lock lock,
             Unlock unlock) {
  long done = 0;
  while (!all.stop.load(std::memory_order_relaxed)) {
    const auto asked = std::chrono::steady_clock::now();
    lock();
    if (sampling) {
      all.sample(std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - asked)
                     .count());
    }
    if (all.inside.fetch_add(1) != 0) all.overlaps.fetch_add(1);
    if (hold.count() > 0) std::this_thread::sleep_for(hold);
    all.inside.fetch_sub(1);
    unlock();
    ++done;
  }
  all.done[me] += done;
}

inline long total(const shared_board& all) {
  long sum = 0;
  for (const auto& one : all.done)
    sum += one.load();
  return sum;
}

inline void contend_with_us(const std::string& url, shared_board& all, int me,
                            std::chrono::microseconds hold, bool sampling) {
  client us{url};
  auto lock = us.mutex("bench/hot");
  // Connected. Sixteen that connect to five servers at once may take longer than a node has.
  for (int i = 0; i < 100; ++i) {
    try {
      static_cast<void>(us.status("bench/hot"));
      break;
    } catch (const error&) {
      std::this_thread::sleep_for(std::chrono::milliseconds{20});
    }
  }
  ready_and_wait(all);
  std::optional<lease> held;
  contend(
      all, me, hold, sampling, [&] { held = lock.acquire(); }, [&] { held.reset(); });
}

}  // namespace holdfast::bench
