// Many leases, many locks, many waiters: what must not grow.
#include <sys/resource.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <thread>

#include <holdfast/holdfast.hpp>

#include "bench.hpp"
#include "hand_rolled.hpp"
#include "workers.hpp"

namespace holdfast::bench {

namespace {

using clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using std::chrono::seconds;

double seconds_since(clock::time_point start) {
  return std::chrono::duration<double>(clock::now() - start).count();
}

// CPU seconds that this process has used.
double our_cpu() {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  const auto of = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6;
  };
  return of(used.ru_utime) + of(used.ru_stime);
}

// Percent of a core, client and server together, for holding ten thousand leases.
turn renewing(const servers& at) {
  return [at](milliseconds time) {
    constexpr int leases = 10'000;
    // A renewal of all of them every ten seconds: a shorter look would be luck.
    const auto window = time < seconds{1} ? seconds{20} : seconds{60};
    client us{at.tcp_url(), client_options{.lock = {.ttl = seconds{30}}}};
    std::vector<lease> held;
    held.reserve(leases);
    for (int i = 0; i < leases; ++i)
      held.push_back(us.mutex("bench/held/" + std::to_string(i)).acquire());
    hand_rolled server{::redisConnect(at.host.c_str(), at.port)};
    const auto before = our_cpu() + server.cpu_seconds();
    const auto start = clock::now();
    std::this_thread::sleep_for(window);
    const auto used = our_cpu() + server.cpu_seconds() - before;
    const auto percent = used / seconds_since(start) * 100;
    const auto lost =
        std::count_if(held.begin(), held.end(), [](auto& one) { return !one.held(); });
    if (lost > 0) throw std::runtime_error{"bench: leases were lost"};
    return percent;
  };
}

// µs for lock + unlock, going round among so many locks.
turn among_locks(const servers& at, int count) {
  return [at, count](milliseconds time) {
    client us{at.tcp_url()};
    std::vector<holdfast::mutex> locks;
    locks.reserve(static_cast<std::size_t>(count));
    for (int i = 0; i < count; ++i)
      locks.push_back(us.mutex("bench/many/" + std::to_string(i)));
    for (std::size_t i = 0; i < std::min<std::size_t>(locks.size(), 200); ++i)
      const std::scoped_lock warm{locks[i]};
    std::size_t done = 0;
    const auto start = clock::now();
    while (clock::now() - start < time) {
      for (int i = 0; i < 16; ++i)
        const std::scoped_lock guard{locks[done++ % locks.size()]};
    }
    return seconds_since(start) / static_cast<double>(done) * 1e6;
  };
}

// µs for a hand-over, with so many attempts in the queue; four processes, each attempt for itself.
turn among_waiters(const servers& at, int count) {
  return [at, count](milliseconds time) {
    constexpr int processes_max = 4;
    const int processes = std::min(count, processes_max);
    board all;
    run_workers(*all, processes, time, [&](int me) {
      client us{at.tcp_url(), client_options{.hand_over_here = false}};
      const std::string name = "bench/queue/" + std::to_string(count);
      static_cast<void>(us.status(name));
      std::stop_source stop;
      std::atomic<long> done{0};
      {
        std::vector<std::jthread> threads;
        for (int i = 0; i < count / processes; ++i) {
          threads.emplace_back([&] {
            auto lock = us.mutex(name);
            while (!all->stop.load(std::memory_order_relaxed)) {
              if (auto held = lock.try_acquire(forever, stop.get_token())) ++done;
            }
          });
        }
        // All of them in the queue before it counts.
        while (us.status(name).waiting + static_cast<std::size_t>(processes) <
               static_cast<std::size_t>(count)) {
          std::this_thread::sleep_for(milliseconds{5});
        }
        ready_and_wait(*all);
        const auto before = done.load();
        while (!all->stop.load())
          std::this_thread::sleep_for(milliseconds{1});
        all->done[me] = done.load() - before;
        stop.request_stop();
      }
    });
    long sum = 0;
    for (const auto& one : all->done)
      sum += one.load();
    return std::chrono::duration<double, std::micro>(time).count() /
           static_cast<double>(std::max(1L, sum));
  };
}

}  // namespace

std::vector<bench_case> at_scale_cases(const servers& at) {
  std::vector<bench_case> all;
  bench_case renew{"renew_10k",   "holding 10,000 leases, TTL 30 s: CPU of client and server",
                   "% of a core", "1 %",
                   false,         2,
                   renewing(at),  constant(1)};
  renew.rounds = 1;
  all.push_back(renew);
  for (const auto& [count, text] : {std::pair{10, "10"}, {1'000, "1k"}, {100'000, "100k"}}) {
    all.push_back({std::string{"scaling_locks_"} + text,
                   std::string{"lock + unlock among "} + text + " locks", "µs", "one lock", false,
                   1.5, among_locks(at, count), among_locks(at, 1)});
  }
  for (const int count : {16, 256, 4096}) {
    all.push_back({"scaling_queue_" + std::to_string(count),
                   "a hand-over with " + std::to_string(count) +
                       " attempts in the queue, from four processes, cohort off",
                   "µs", "two attempts", false, 1.5, among_waiters(at, count),
                   among_waiters(at, 2)});
  }
  return all;
}

}  // namespace holdfast::bench
