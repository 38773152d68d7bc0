// A lock on three ZooKeeper servers, beside the C client by hand.
#include "bench.hpp"
#include "support/built.hpp"

#if HOLDFAST_HAS_ZOOKEEPER

// The calls that wait for their answers.
#define THREADED
#include <zookeeper/zookeeper.h>

#include <array>
#include <memory>
#include <stdexcept>
#include <thread>

#include <holdfast/holdfast.hpp>

#include "contending.hpp"
#include "pairs.hpp"
#include "support/zookeeper_ensemble.hpp"
#include "support/zookeeper_raw.hpp"
#include "workers.hpp"

namespace holdfast::bench {

namespace {

using std::chrono::milliseconds;

// Started when a case first wants them. They write to their disks, as real ones do.
class ensemble {
 public:
  test::zookeeper_ensemble& operator*() {
    if (!servers_) {
      servers_ =
          std::make_unique<test::zookeeper_ensemble>(3, test::zookeeper_ensemble::disk::durable);
    }
    return *servers_;
  }
  test::zookeeper_ensemble* operator->() { return &**this; }

 private:
  std::unique_ptr<test::zookeeper_ensemble> servers_;
};
using shared_ensemble = std::shared_ptr<ensemble>;

std::int64_t now_ns() { return std::chrono::steady_clock::now().time_since_epoch().count(); }

void check(int rc) {
  if (rc != ZOK) throw std::runtime_error{::zerror(rc)};
}

turn our_pairs(const shared_ensemble& on) {
  return [on](milliseconds time) {
    client us{(*on)->url("/bench")};
    auto lock = us.mutex("pair");
    return per_second(time, [&] { static_cast<void>(lock.acquire().release()); });
  };
}

// The recipe, as one writes it with the calls that wait: no recovery, no renewal, no token.
turn pairs_by_hand(const shared_ensemble& on) {
  return [on](milliseconds time) {
    test::raw_zookeeper session{(*on)->hosts()};
    // Not a container: the server would remove it between two pairs.
    if (!session.exists("/bench/by-hand"))
      static_cast<void>(session.create("/bench/by-hand", "", ZOO_PERSISTENT));
    auto* const zh = session.get();
    return per_second(time, [&] {
      std::array<char, 256> node{};
      check(::zoo_create(zh, "/bench/by-hand/lock-", "", 0, &ZOO_OPEN_ACL_UNSAFE,
                         ZOO_EPHEMERAL_SEQUENTIAL, node.data(), node.size()));
      String_vector all{};
      check(::zoo_get_children(zh, "/bench/by-hand", 0, &all));
      ::deallocate_String_vector(&all);
      check(::zoo_delete(zh, node.data(), -1));
    });
  };
}

// From one process giving the lock back to the other running with it.
turn handoff(const shared_ensemble& on) {
  return [on](milliseconds time) {
    const auto url = (*on)->url("/bench");
    board all;
    run_workers(*all, 2, time, [&](int) {
      client us{url};
      auto lock = us.mutex("handoff");
      static_cast<void>(us.status("handoff"));
      ready_and_wait(*all);
      int mine = 0;
      while (!all->stop.load()) {
        auto held = lock.acquire();
        const auto since = all->released_at_ns.exchange(0);
        if (since != 0 && mine > 0) all->sample(static_cast<double>(now_ns() - since) / 1000);
        ++mine;
        std::this_thread::sleep_for(milliseconds{20});  // the other one is queued now
        all->released_at_ns = now_ns();
      }
    });
    auto samples = all->samples();
    return quantile(samples, 0.5);
  };
}

turn one_write(const shared_ensemble& on) {
  return [on](milliseconds time) {
    test::raw_zookeeper session{(*on)->hosts()};
    const auto node = session.create("/bench/written", "", ZOO_EPHEMERAL);
    const auto got = quantile_of_calls(time, 0.5, [&] {
      return microseconds_of([&] { check(::zoo_set(session.get(), node.c_str(), "x", 1, -1)); });
    });
    static_cast<void>(session.remove(node));
    return got;
  };
}

}  // namespace

std::vector<bench_case> zookeeper_cases() {
  const auto on = std::make_shared<ensemble>();
  return {
      {"zookeeper_pair_1", "three ZooKeeper servers: one thread, one lock, the release awaited",
       "pairs/s", "create, getChildren and delete by hand with the C client", true, 0.95,
       our_pairs(on), pairs_by_hand(on)},
      {"zookeeper_handoff", "release in one process to running in the next, p50", "µs",
       "one write to the same ensemble, p50", false, 2.5, handoff(on), one_write(on)},
  };
}

}  // namespace holdfast::bench

#else

namespace holdfast::bench {
std::vector<bench_case> zookeeper_cases() { return {}; }
}  // namespace holdfast::bench

#endif
