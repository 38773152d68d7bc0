// Callers that came together each found fewer connections than the limit and opened one. With
// `connections=2` and 32 threads the server had 32 clients more, and kept them.
#include <atomic>
#include <barrier>
#include <thread>
#include <vector>

#include "support/proxied_redis.hpp"

using namespace std::chrono_literals;

namespace holdfast::test {

namespace {

constexpr int threads = 32;
constexpr std::size_t limit = 2;
constexpr std::size_t for_renewals = 1;

}  // namespace

class ConnectionLimit : public proxied_redis {
 protected:
  // Connections that the server has from Holdfast now.
  [[nodiscard]] std::size_t connected() {
    const std::string all = looker.command({"CLIENT", "LIST"}).shown();
    std::size_t n = 0;
    for (auto at = all.find(name); at != std::string::npos; at = all.find(name, at + 1))
      ++n;
    return n;
  }
  // All threads at once, `rounds` times each; the most connections that were seen meanwhile.
  [[nodiscard]] std::size_t most_connected(client& c, int rounds) {
    std::barrier together{threads};
    std::atomic<int> running{threads};
    std::vector<std::thread> all;
    for (int i = 0; i < threads; ++i) {
      all.emplace_back([&, lock = "lock/" + std::to_string(i)] {
        together.arrive_and_wait();
        for (int round = 0; round < rounds; ++round) {
          EXPECT_TRUE(c.mutex(lock).acquire().release());
        }
        --running;
      });
    }
    std::size_t most = 0;
    while (running > 0)
      most = std::max(most, connected());
    for (std::thread& t : all)
      t.join();
    return std::max(most, connected());
  }

  static constexpr std::string_view name = " name=holdfast ";
  raw_redis looker{server.where()};
};

TEST_F(ConnectionLimit, IsKeptByAClientThatIsConnected) {
  client c{proxy.url() + "?connections=2", {.lock = {.ttl = 60s}}};
  (void)most_connected(c, 1);
  ASSERT_TRUE(eventually([&] { return connected() <= limit + for_renewals; }, 10s))
      << connected() << " connections";
  EXPECT_LE(most_connected(c, 20), limit + for_renewals);
}

TEST_F(ConnectionLimit, IsKeptWhileConnecting) {
  proxy.delay_replies(20ms);  // connecting takes long enough for all to come meanwhile
  client c{proxy.url() + "?connections=2", {.lock = {.ttl = 60s}}};
  EXPECT_LE(most_connected(c, 1), limit + for_renewals);
  EXPECT_LE(proxy.connections_made(), limit + for_renewals);
}

}  // namespace holdfast::test
