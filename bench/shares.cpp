// Locks that several may hold, beside mutexes.
#include <optional>

#include <holdfast/holdfast.hpp>

#include "bench.hpp"
#include "contending.hpp"
#include "workers.hpp"

namespace holdfast::bench {

namespace {

constexpr int many = 16;
constexpr std::uint32_t permits = 4;

// One worker: takes and gives back until told to stop, beside at most `most - 1` others.
template <class Acquire>
void take_turns(shared_board& all, int me, int most, Acquire acquire) {
  static_cast<void>(acquire());  // connected, and the script is known
  ready_and_wait(all);
  long done = 0;
  while (!all.stop.load(std::memory_order_relaxed)) {
    const lease held = acquire();
    if (all.inside.fetch_add(1) >= most) all.overlaps.fetch_add(1);
    all.inside.fetch_sub(1);
    ++done;
  }
  all.done[me] += done;
}

template <class Worker>
turn rate_of(const servers& at, Worker one) {
  return [at, one](std::chrono::milliseconds time) {
    board all;
    run_workers(*all, many, time, [&](int i) {
      client us{at.tcp_url()};
      one(us, *all, i);
    });
    return static_cast<double>(total(*all)) / std::chrono::duration<double>(time).count();
  };
}

void read_together(client& us, shared_board& all, int me) {
  auto lock = us.shared_mutex("bench/shared");
  take_turns(all, me, many, [&] { return lock.acquire_shared(); });
}

void lock_apart(client& us, shared_board& all, int me) {
  auto lock = us.mutex("bench/apart/" + std::to_string(me));
  take_turns(all, me, many, [&] { return lock.acquire(); });
}

void take_a_permit(client& us, shared_board& all, int me) {
  auto slots = us.semaphore("bench/slots", permits);
  take_turns(all, me, permits, [&] { return slots.acquire(); });
}

void take_the_lock(client& us, shared_board& all, int me) {
  auto lock = us.mutex("bench/one");
  take_turns(all, me, 1, [&] { return lock.acquire(); });
}

}  // namespace

std::vector<bench_case> share_cases(const servers& at) {
  return {
      {"shared_16_readers", "16 processes read under one lock, held 0 ms", "acquisitions/s",
       "16 mutexes, one for each process", true, 1.0, rate_of(at, read_together),
       rate_of(at, lock_apart)},
      {"semaphore_contended", "16 processes, 4 permits, held 0 ms", "acquisitions/s",
       "16 processes, one mutex", true, 1.0, rate_of(at, take_a_permit),
       rate_of(at, take_the_lock)},
  };
}

}  // namespace holdfast::bench
