// A lock on five servers, beside one server.
#include <memory>
#include <mutex>
#include <thread>

#include <holdfast/holdfast.hpp>

#include "bench.hpp"
#include "contending.hpp"
#include "hand_rolled.hpp"
#include "hand_rolled_quorum.hpp"
#include "pairs.hpp"
#include "support/redlock_nodes.hpp"

namespace holdfast::bench {

namespace {

using clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
constexpr std::size_t nodes = 5;
constexpr int many = 16;

// Started when a case first wants them.
class quorum {
 public:
  test::redlock_nodes& operator*() {
    if (!set_)
      set_ = std::make_unique<test::redlock_nodes>(nodes, test::redlock_nodes_options{{}, ""});
    return *set_;
  }
  test::redlock_nodes* operator->() { return &**this; }

 private:
  std::unique_ptr<test::redlock_nodes> set_;
};
using shared_quorum = std::shared_ptr<quorum>;

enum class one_node { healthy, dead, hung };

// One of the five, until the end of the turn. A dead one stays so: it would be in quarantine.
class trouble {
 public:
  trouble(test::redis_server& with, one_node how) : with_{with}, how_{how} {
    if (how_ == one_node::dead && with_.pid() > 0) with_.kill9();
    if (how_ == one_node::hung) with_.pause();
  }
  trouble(const trouble&) = delete;
  trouble& operator=(const trouble&) = delete;
  ~trouble() {
    if (how_ == one_node::hung) with_.resume();
  }

 private:
  test::redis_server& with_;
  one_node how_;
};

turn our_pairs(const shared_quorum& on) {
  return [on](milliseconds time) {
    client us{(*on)->url()};
    auto lock = us.mutex("bench/pair");
    return per_second(time, [&] { const std::scoped_lock guard{lock}; });
  };
}

turn their_pairs(const servers& at) {
  return [at](milliseconds time) {
    hand_rolled them{::redisConnect(at.host.c_str(), at.port)};
    return per_second(time, [&] {
      if (!them.lock("bench/their-pair")) throw std::runtime_error{"baseline: not free"};
      them.unlock("bench/their-pair");
    });
  };
}

hand_rolled_quorum by_hand(test::redlock_nodes& set, std::size_t asked) {
  std::vector<redisContext*> all;
  for (std::size_t i = 0; i < asked; ++i)
    all.push_back(::redisConnect("127.0.0.1", set[i].port()));
  return {all, nodes / 2 + 1};
}

turn pairs_by_hand(const shared_quorum& on) {
  return [on](milliseconds time) {
    auto them = by_hand(**on, nodes);
    return per_second(time, [&] {
      if (!them.lock("bench/their-pair")) throw std::runtime_error{"baseline: not free"};
      if (!them.unlock("bench/their-pair")) throw std::runtime_error{"baseline: not held"};
    });
  };
}

turn acquire_time_by_hand(const shared_quorum& on, std::size_t asked) {
  return [on, asked](milliseconds time) {
    auto them = by_hand(**on, asked);
    return quantile_of_calls(time, 0.5, [&] {
      const auto took = microseconds_of([&] {
        if (!them.lock("bench/their-acquire")) throw std::runtime_error{"baseline: not free"};
      });
      static_cast<void>(them.unlock("bench/their-acquire"));
      return took;
    });
  };
}

// How long an acquire takes, in µs, with pauses between that let everybody fall asleep.
turn acquire_time(const shared_quorum& on, one_node how, double share) {
  return [on, how, share](milliseconds time) {
    auto& set = **on;
    client us{set.url()};
    auto lock = us.mutex("bench/acquire");
    const auto once = [&] {
      std::optional<lease> held;
      const auto took = microseconds_of([&] { held = lock.acquire(); });
      if (!held->release()) throw std::runtime_error{"a release failed"};
      return took;
    };
    static_cast<void>(once());  // connected
    const trouble with{set[nodes / 2], how};
    for (int i = 0; i < 20; ++i)
      static_cast<void>(once());  // noticed
    return quantile_of_calls(time, share, once);
  };
}

turn contended_rate(std::function<std::string()> url) {
  return [url = std::move(url)](milliseconds time) {
    board all;
    const auto at = url();
    run_workers(*all, many, time, [&](int i) { contend_with_us(at, *all, i, {}, false); });
    return static_cast<double>(total(*all)) / std::chrono::duration<double>(time).count();
  };
}

// As most do it: try again every millisecond. What a split vote leaves is given back before that.
turn contended_rate_by_hand(const shared_quorum& on) {
  return [on](milliseconds time) {
    board all;
    auto& set = **on;
    run_workers(*all, many, time, [&](int i) {
      auto them = by_hand(set, nodes);
      ready_and_wait(*all);
      contend(
          *all, i, {}, false,
          [&] {
            while (!them.lock("bench/their-hot")) {
              static_cast<void>(them.unlock("bench/their-hot"));
              std::this_thread::sleep_for(milliseconds{1});
            }
          },
          [&] { static_cast<void>(them.unlock("bench/their-hot")); });
    });
    return static_cast<double>(total(*all)) / std::chrono::duration<double>(time).count();
  };
}

turn slowest_acquire(const shared_quorum& on) {
  return [on](milliseconds time) {
    board all;
    const auto at = (*on)->url();
    run_workers(*all, many, time,
                [&](int i) { contend_with_us(at, *all, i, milliseconds{1}, true); });
    auto samples = all->samples();
    return quantile(samples, 1) / 1000;
  };
}

// In per cent, told by what the servers ran: a grant that took a second round trip had a vote that
// was stale, which sets the lock without moving a counter; whatever else sets it does both. Two
// clients take turns.
turn fast_path_share(const shared_quorum& on) {
  return [on](milliseconds time) {
    auto& set = **on;
    client one{set.url()};
    client other{set.url()};
    auto its = one.mutex("bench/fast-path");
    auto others = other.mutex("bench/fast-path");
    const auto stale_votes = [&set] {
      double sum = 0;
      for (std::size_t i = 0; i < nodes; ++i) {
        sum += static_cast<double>(set[i].calls_of("set")) -
               static_cast<double>(set[i].calls_of("hset"));
      }
      return sum;
    };
    const auto before = stale_votes();
    double grants = 0;
    for (const auto end = clock::now() + time; clock::now() < end; grants += 2) {
      if (!its.acquire().release() || !others.acquire().release()) {
        throw std::runtime_error{"a release failed"};
      }
    }
    return 100 * (1 - (stale_votes() - before) / grants);
  };
}

}  // namespace

std::vector<bench_case> redlock_cases(const servers& at) {
  const auto on = std::make_shared<quorum>();
  const std::string healthy = "all five healthy";
  std::vector<bench_case> cases{
      {"redlock5_pair_1", "five nodes, one thread, one lock", "pairs/s",
       "SET NX PX + EVALSHA by hand on one node", true, 0, our_pairs(on), their_pairs(at)},
      {"redlock5_acquire", "five nodes: acquire, p50", "µs", "one PING round trip, p50", false, 0,
       acquire_time(on, one_node::healthy, 0.5), ping_latency(at)},
      {"redlock5_pair_1_by_hand", "five nodes, one thread, one lock", "pairs/s",
       "SET NX PX + EVALSHA by hand on the same five, in parallel", true, 0.9, our_pairs(on),
       pairs_by_hand(on)},
      {"redlock5_acquire_by_hand", "five nodes: acquire, p50", "µs",
       "SET NX PX by hand on the same five, in parallel", false, 1.5,
       acquire_time(on, one_node::healthy, 0.5), acquire_time_by_hand(on, nodes)},
      {"redlock5_acquire_floor", "a bare SET on three nodes by hand, and nothing else, p50", "µs",
       "one PING round trip, p50", false, 0, acquire_time_by_hand(on, nodes / 2 + 1),
       ping_latency(at)},
      {"redlock5_contended_16", "five nodes, 16 processes, one lock, held 0 ms", "acquisitions/s",
       "the same on one node", true, 0, contended_rate([on] { return (*on)->url(); }),
       contended_rate([at] { return at.tcp_url(); })},
      {"redlock5_contended_16_by_hand", "the same", "acquisitions/s",
       "SET NX PX by hand on the same five, tried every millisecond", true, 1.0,
       contended_rate([on] { return (*on)->url(); }), contended_rate_by_hand(on)},
      {"redlock5_contended_16_slowest", "the same, held 1 ms: the slowest acquire", "ms",
       "16 × 1 ms", false, 10, slowest_acquire(on), constant(16)},
      {"redlock5_fast_path", "uncontended grants in one round trip", "%", "all of them", true, 0.99,
       fast_path_share(on), constant(100)},
  };
  const auto with_trouble = std::make_shared<quorum>();
  for (const auto& [how, name, what] :
       {std::tuple{one_node::hung, "redlock5_one_hung", "one of five is stopped (SIGSTOP)"},
        std::tuple{one_node::dead, "redlock5_one_dead", "one of five refuses connections"}}) {
    for (const auto& [share, suffix, most] :
         {std::tuple{0.5, "p50", 1.1}, std::tuple{0.99, "p99", 1.5}}) {
      cases.push_back({std::string{name} + "_" + suffix, std::string{what} + ": acquire, " + suffix,
                       "µs", healthy, false, most, acquire_time(with_trouble, how, share),
                       acquire_time(on, one_node::healthy, share)});
    }
  }
  return cases;
}

}  // namespace holdfast::bench
