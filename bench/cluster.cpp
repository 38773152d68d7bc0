// A cluster of three masters. The baseline knows which node has its key, and asks no other.
#include <memory>
#include <mutex>

#include <holdfast/holdfast.hpp>

#include "bench.hpp"
#include "hand_rolled.hpp"
#include "pairs.hpp"
#include "support/redis_cluster.hpp"

namespace holdfast::bench {

namespace {

using std::chrono::milliseconds;
constexpr int many = 16;

// Started when a case first wants it.
class deployment {
 public:
  test::redis_cluster& operator*() {
    if (!nodes_) nodes_ = std::make_unique<test::redis_cluster>();
    return *nodes_;
  }
  std::unique_ptr<hand_rolled> by_hand(const std::string& key) {
    const auto port = (**this)[(**this).master_of(key)].port();
    return std::make_unique<hand_rolled>(::redisConnect("127.0.0.1", port));
  }

 private:
  std::unique_ptr<test::redis_cluster> nodes_;
};
using cluster = std::shared_ptr<deployment>;

turn our_pairs(const cluster& on) {
  return [on](milliseconds time) {
    client us{(**on).url()};
    auto lock = us.mutex("bench/pair");
    return per_second(time, [&] { const std::scoped_lock guard{lock}; });
  };
}

turn their_pairs(const cluster& on) {
  return [on](milliseconds time) {
    const std::string key = "bench/their-pair";
    const auto them = on->by_hand(key);
    return per_second(time, [&] {
      if (!them->lock(key)) throw std::runtime_error{"baseline: the lock was not free"};
      them->unlock(key);
    });
  };
}

turn our_pairs_in_threads(const cluster& on) {
  return [on](milliseconds time) {
    client us{(**on).url()};
    return per_second_in_threads(many, time, [&](int i) {
      return [lock = us.mutex("bench/pair/" + std::to_string(i))]() mutable {
        const std::scoped_lock guard{lock};
      };
    });
  };
}

turn their_pairs_in_threads(const cluster& on) {
  return [on](milliseconds time) {
    static_cast<void>(**on);  // not by sixteen threads at once
    return per_second_in_threads(many, time, [&](int i) {
      const auto key = "bench/their-pair/" + std::to_string(i);
      return [them = std::shared_ptr<hand_rolled>{on->by_hand(key)}, key] {
        if (!them->lock(key)) throw std::runtime_error{"baseline: the lock was not free"};
        them->unlock(key);
      };
    });
  };
}

}  // namespace

std::vector<bench_case> cluster_cases() {
  const auto on = std::make_shared<deployment>();
  const std::string by_hand = "SET NX PX + EVALSHA by hand, both awaited, straight to the node";
  return {
      {"cluster_pair_1", "a cluster of three: one thread, one lock", "pairs/s", by_hand, true, 1.4,
       our_pairs(on), their_pairs(on)},
      {"cluster_pair_16", "a cluster of three: 16 threads, 16 locks, one client", "pairs/s",
       by_hand + ", 16 connections", true, 1.6, our_pairs_in_threads(on),
       their_pairs_in_threads(on)},
  };
}

}  // namespace holdfast::bench
