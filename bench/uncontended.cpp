// Nobody else wants the lock: what lock + unlock cost.
#include <memory>
#include <mutex>

#include <holdfast/holdfast.hpp>

#include "bench.hpp"
#include "hand_rolled.hpp"
#include "pairs.hpp"

namespace holdfast::bench {

namespace {

redisContext* connect(const servers& at, bool by_socket) {
  return by_socket ? ::redisConnectUnix(at.socket_path.c_str())
                   : ::redisConnect(at.host.c_str(), at.port);
}

turn our_pairs(const std::string& url, bool awaited) {
  return [url, awaited](std::chrono::milliseconds time) {
    client us{url};
    auto lock = us.mutex("bench/pair");
    if (awaited) {
      return per_second(time, [&] {
        if (!lock.acquire().release()) throw std::runtime_error{"a release failed"};
      });
    }
    return per_second(time, [&] { const std::scoped_lock guard{lock}; });
  };
}

turn rlock_pairs(const std::string& url) {
  return [url](std::chrono::milliseconds time) {
    client us{url};
    redisson::rlock lock{us, "bench/rlock"};
    return per_second(time, [&] { const std::scoped_lock guard{lock}; });
  };
}

turn their_pairs(const servers& at, bool by_socket) {
  return [at, by_socket](std::chrono::milliseconds time) {
    hand_rolled them{connect(at, by_socket)};
    const std::string key = "bench/their-pair";
    return per_second(time, [&] {
      if (!them.lock(key)) throw std::runtime_error{"baseline: the lock was not free"};
      them.unlock(key);
    });
  };
}

turn our_reentries(const std::string& url) {
  return [url](std::chrono::milliseconds time) {
    client us{url};
    auto lock = us.recursive_mutex("bench/again");
    const std::scoped_lock outer{lock};
    return per_second(time, [&] { const std::scoped_lock inner{lock}; });
  };
}

constexpr int many = 16;

turn our_pairs_in_threads(const std::string& url) {
  return [url](std::chrono::milliseconds time) {
    client us{url};
    return per_second_in_threads(many, time, [&](int i) {
      return [lock = us.mutex("bench/pair/" + std::to_string(i))]() mutable {
        const std::scoped_lock guard{lock};
      };
    });
  };
}

turn their_pairs_in_threads(const servers& at) {
  return [at](std::chrono::milliseconds time) {
    return per_second_in_threads(many, time, [&](int i) {
      return [them = std::make_shared<hand_rolled>(connect(at, false)),
              key = "bench/their-pair/" + std::to_string(i)] {
        if (!them->lock(key)) throw std::runtime_error{"baseline: the lock was not free"};
        them->unlock(key);
      };
    });
  };
}

}  // namespace

std::vector<bench_case> uncontended_cases(const servers& at) {
  const std::string by_hand = "SET NX PX + EVALSHA by hand, both awaited";
  return {
      {"pair_1", "one thread, one lock; the release is sent, not awaited", "pairs/s", by_hand, true,
       2.5, our_pairs(at.tcp_url(), false), their_pairs(at, false)},
      {"pair_1_awaited", "the same, the release awaited", "pairs/s", by_hand, true, 0,
       our_pairs(at.tcp_url(), true), their_pairs(at, false)},
      {"pair_1_nospin", "the same as pair_1, without polling the socket", "pairs/s", by_hand, true,
       1.6, our_pairs(at.tcp_url("?spin=0"), false), their_pairs(at, false)},
      {"pair_1_unix", "the same as pair_1 on a unix socket", "pairs/s", by_hand, true, 1.5,
       our_pairs(at.unix_url(), false), their_pairs(at, true)},
      {"rlock_pair_1", "as pair_1, the lock that Java's Redisson shares", "pairs/s", by_hand, true,
       0.9, rlock_pairs(at.tcp_url()), their_pairs(at, false)},
      {"tls_pair_1", "as pair_1, over TLS", "pairs/s", by_hand + ", without TLS", true, 0.7,
       our_pairs(at.tls_url(), false), their_pairs(at, false)},
      {"pair_16", "16 threads, 16 locks, one client", "pairs/s", by_hand + ", 16 connections", true,
       2.0, our_pairs_in_threads(at.tcp_url()), their_pairs_in_threads(at)},
      {"recursive_reentry", "a recursive_mutex that is held, taken and left once more", "pairs/s",
       "a million", true, 1.0, our_reentries(at.tcp_url()), constant(1'000'000)},
  };
}

}  // namespace holdfast::bench
