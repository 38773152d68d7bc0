// Threads of one client queue for a lock, and one of them asks the store. When the store was not
// there, each found that out by itself, when its turn came: the last of many waited for many times
// client_options::unreachable_limit.
#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <holdfast/holdfast.hpp>

#include "runtime/clock.hpp"
#include "support/open_client.hpp"
#include "support/temp_dir.hpp"

using namespace std::chrono_literals;

namespace holdfast::test {

TEST(ThreadsOfOneClient, LearnTogetherThatTheStoreIsNotThere) {
  constexpr int threads = 20;
  constexpr auto limit = 300ms;
  const temp_dir nobody_listens;
  client c{"unix:" + nobody_listens.file("redis.sock"),
           {.operation_timeout = limit, .unreachable_limit = limit}};
  const auto started = runtime::now();
  std::atomic<int> told{0};
  std::vector<std::thread> all;
  for (int i = 0; i < threads; ++i) {
    all.emplace_back([&] {
      const auto code = thrown_by([&] { static_cast<void>(c.mutex("orders").acquire()); });
      told += code == errc::store_unreachable ? 1 : 0;
    });
  }
  for (auto& one : all)
    one.join();
  EXPECT_EQ(told, threads);
  EXPECT_LT(runtime::now() - started, threads / 2 * limit);
  EXPECT_EQ(c.counters().waiting_now, 0U);
}

}  // namespace holdfast::test
