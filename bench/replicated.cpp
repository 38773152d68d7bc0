// Behind Sentinels: what finding the master costs while nothing happens, and how long service is
// away when the master is.
#include <atomic>
#include <mutex>
#include <stdexcept>
#include <thread>

#include <holdfast/holdfast.hpp>

#include "bench.hpp"
#include "hand_rolled.hpp"
#include "pairs.hpp"
#include "support/process.hpp"
#include "support/sentinel_group.hpp"

namespace holdfast::bench {

namespace {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;

// Started when a case needs it. Nothing that is busy is taken for dead.
test::sentinel_group& undisturbed() {
  static test::sentinel_group group{{.down_after = std::chrono::minutes{10}}};
  return group;
}

double our_pairs(std::chrono::milliseconds time) {
  client us{undisturbed().url()};
  auto lock = us.mutex("bench/pair");
  return per_second(time, [&] { const std::scoped_lock guard{lock}; });
}

double their_pairs(std::chrono::milliseconds time) {
  hand_rolled them{::redisConnect("127.0.0.1", undisturbed().server(0).port())};
  const std::string key = "bench/their-pair";
  return per_second(time, [&] {
    if (!them.lock(key)) throw std::runtime_error{"baseline: the lock was not free"};
    them.unlock(key);
  });
}

// When a Sentinel names another master that takes writes: from then on service is possible.
clock::time_point await_new_master(const test::sentinel_group& group) {
  const bool there = test::eventually([&] {
    return (group.master_of(1) == 1 || group.master_of(2) == 1) && group.role_of(1) == "master";
  });
  if (!there) throw std::runtime_error{"the Sentinels do not fail over"};
  return clock::now();
}

// The master dies in one turn and falls silent in the next. In ms, beyond what Sentinels took.
double failover_gap(std::chrono::milliseconds) {
  static bool dies = false;
  dies = !dies;
  test::sentinel_group group;
  client us{group.url(), {.lock = {.ttl = 10s}, .unreachable_limit = 30s, .release_budget = 30s}};
  std::atomic<clock::duration::rep> last_success{0};
  std::atomic<bool> over{false};
  std::thread worker{[&] {
    for (int i = 0; !over; ++i) {
      try {
        // Each its own: a lock whose release was lost with the master is not what is measured.
        const lease held = us.mutex("bench/gap/" + std::to_string(i)).acquire(30s);
        if (held.held()) last_success = clock::now().time_since_epoch().count();
      } catch (const error&) {  // of unknown outcome: the next one is another lock
      }
    }
  }};
  const bool serves = test::eventually([&] { return last_success != 0; });
  dies ? group.server(0).kill9() : group.server(0).pause();
  const auto possible = await_new_master(group);
  const bool back =
      test::eventually([&] { return last_success > possible.time_since_epoch().count(); });
  const clock::time_point first{clock::duration{last_success.load()}};
  over = true;
  worker.join();
  if (!serves || !back) throw std::runtime_error{"service did not come back"};
  return std::chrono::duration<double, std::milli>(first - possible).count();
}

}  // namespace

std::vector<bench_case> replicated_cases() {
  return {
      {"sentinel_pair_1", "as pair_1, the master found by Sentinels", "pairs/s",
       "SET NX PX + EVALSHA by hand, both awaited", true, 1.4, our_pairs, their_pairs},
      {"failover_gap",
       "no service, beyond the Sentinels' own failover: the master killed, or stopped", "ms",
       "a second", false, 1.0, failover_gap, constant(1000), 4},
  };
}

}  // namespace holdfast::bench
