// Many want the same lock.
#include <algorithm>
#include <memory>
#include <thread>

#include <holdfast/holdfast.hpp>

#include "bench.hpp"
#include "contending.hpp"
#include "fifo.hpp"
#include "hand_rolled.hpp"
#include "workers.hpp"

namespace holdfast::bench {

namespace {

using clock = std::chrono::steady_clock;
constexpr int many = 16;

std::int64_t now_ns() { return clock::now().time_since_epoch().count(); }

redisContext* connect(const servers& at) { return ::redisConnect(at.host.c_str(), at.port); }

double most_by_fewest(const shared_board& all, int workers) {
  long most = 0;
  long fewest = 1L << 60;
  for (int i = 0; i < workers; ++i) {
    most = std::max(most, all.done[i].load());
    fewest = std::min(fewest, all.done[i].load());
  }
  return static_cast<double>(most) / static_cast<double>(std::max(1L, fewest));
}

void our_worker(const servers& at, shared_board& all, int me, std::chrono::microseconds hold,
                bool sampling) {
  contend_with_us(at.tcp_url(), all, me, hold, sampling);
}

void fifo_worker(const servers& at, shared_board& all, int me, std::chrono::microseconds hold,
                 bool sampling) {
  fifo them{connect(at), "bench/their-hot", std::to_string(me)};
  ready_and_wait(all);
  contend(
      all, me, hold, sampling, [&] { them.lock(); }, [&] { them.unlock(); });
}

// As most do it: try again every millisecond.
void polling_worker(const servers& at, shared_board& all, int me, std::chrono::microseconds hold,
                    bool sampling) {
  hand_rolled them{connect(at)};
  ready_and_wait(all);
  contend(
      all, me, hold, sampling,
      [&] {
        while (!them.lock("bench/polled"))
          std::this_thread::sleep_for(std::chrono::milliseconds{1});
      },
      [&] { them.unlock("bench/polled"); });
}

using worker = void (*)(const servers&, shared_board&, int, std::chrono::microseconds, bool);

turn rate_of(const servers& at, worker one) {
  return [at, one](std::chrono::milliseconds time) {
    board all;
    run_workers(*all, many, time, [&](int i) { one(at, *all, i, {}, false); });
    return static_cast<double>(total(*all)) / std::chrono::duration<double>(time).count();
  };
}

turn unfairness_of(const servers& at, worker one) {
  return [at, one](std::chrono::milliseconds time) {
    board all;
    run_workers(*all, many, time, [&](int i) { one(at, *all, i, {}, false); });
    return most_by_fewest(*all, many);
  };
}

turn slow_acquires(const servers& at, worker one) {
  return [at, one](std::chrono::milliseconds time) {
    board all;
    run_workers(*all, many, time,
                [&](int i) { one(at, *all, i, std::chrono::milliseconds{1}, true); });
    auto samples = all->samples();
    return quantile(samples, 0.999) / 1000;
  };
}

turn our_threads(const servers& at) {
  return [at](std::chrono::milliseconds time) {
    board all;
    run_workers(*all, 1, time, [&](int) {
      client us{at.tcp_url()};
      ready_and_wait(*all);
      std::vector<std::jthread> threads;
      for (int i = 0; i < many; ++i) {
        threads.emplace_back([&, i] {
          auto lock = us.mutex("bench/hot");
          std::optional<lease> held;
          contend(
              *all, i, {}, false, [&] { held = lock.acquire(); }, [&] { held.reset(); });
        });
      }
    });
    return static_cast<double>(total(*all)) / std::chrono::duration<double>(time).count();
  };
}

turn fifo_threads(const servers& at) {
  return [at](std::chrono::milliseconds time) {
    board all;
    run_workers(*all, 1, time, [&](int) {
      ready_and_wait(*all);
      std::vector<std::jthread> threads;
      for (int i = 0; i < many; ++i) {
        threads.emplace_back([&, i] {
          fifo them{connect(at), "bench/their-hot", std::to_string(i)};
          contend(
              *all, i, {}, false, [&] { them.lock(); }, [&] { them.unlock(); });
        });
      }
    });
    return static_cast<double>(total(*all)) / std::chrono::duration<double>(time).count();
  };
}

// Script calls for one acquisition, counted by the server.
turn commands_per_acquisition(const servers& at) {
  return [at](std::chrono::milliseconds time) {
    hand_rolled counter{connect(at)};
    const auto before = counter.script_calls();
    board all;
    run_workers(*all, many, time, [&](int i) { our_worker(at, *all, i, {}, false); });
    return static_cast<double>(counter.script_calls() - before) /
           static_cast<double>(std::max(1L, total(*all)));
  };
}

// From one process giving the lock back to the other running with it, in µs, half of the time.
turn handoff_latency(const servers& at) {
  return [at](std::chrono::milliseconds time) {
    board all;
    run_workers(*all, 2, time, [&](int i) {
      client us{at.tcp_url()};
      auto lock = us.mutex("bench/handoff");
      static_cast<void>(us.status("bench/handoff"));
      ready_and_wait(*all);
      int mine = 0;
      while (!all->stop.load()) {
        auto held = lock.acquire();
        const auto since = all->released_at_ns.exchange(0);
        // Only if the other one had it before: then it waited while we, and we while it, held.
        if (since != 0 && mine > 0) all->sample(static_cast<double>(now_ns() - since) / 1000);
        ++mine;
        std::this_thread::sleep_for(std::chrono::microseconds{300});  // the other one is queued now
        all->released_at_ns = now_ns();
      }
      static_cast<void>(i);
    });
    auto samples = all->samples();
    return quantile(samples, 0.5);
  };
}

}  // namespace

std::vector<bench_case> contended_cases(const servers& at) {
  const std::string by_hand =
      "a first-come-first-served lock by hand: queue, BLPOP; no token, no TTL";
  return {
      {"contended_processes_16", "16 processes, one lock, held 0 ms; tokens included",
       "acquisitions/s", by_hand, true, 0.9, rate_of(at, our_worker), rate_of(at, fifo_worker)},
      {"contended_polling_16", "the same", "acquisitions/s", "SET NX PX tried every millisecond",
       true, 0, rate_of(at, our_worker), rate_of(at, polling_worker)},
      {"contended_polling_16_1ms", "held 1 ms: p99.9 of acquire", "ms",
       "SET NX PX tried every millisecond", false, 0, slow_acquires(at, our_worker),
       slow_acquires(at, polling_worker)},
      {"contended_fairness", "the same: most ÷ fewest acquisitions of a process", "most/fewest",
       "1", false, 1.05, unfairness_of(at, our_worker), constant(1)},
      {"contended_processes_16_1ms", "the same, held 1 ms: p99.9 of acquire", "ms", "16 × 1 ms",
       false, 3, slow_acquires(at, our_worker), constant(16)},
      {"contended_threads_16", "16 threads of one process, one lock, held 0 ms", "acquisitions/s",
       by_hand + "; 16 connections", true, 10, our_threads(at), fifo_threads(at)},
      {"commands_per_acquisition", "scripts per contended acquisition, 16 processes", "scripts",
       "1", false, 2.1, commands_per_acquisition(at), constant(1)},
      {"handoff_latency", "release in one process to running in the next, p50", "µs",
       "one PING round trip, p50", false, 1.6, handoff_latency(at), ping_latency(at)},
  };
}

}  // namespace holdfast::bench
