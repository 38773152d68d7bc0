// A connection froze: no reply, no end. The release that a destructor had sent on it was waited for
// without limit and never tried elsewhere, and every later ask for that lock followed it onto the
// same connection, to keep behind it: errc::outcome_unknown each time, while new connections
// worked.
#include <unistd.h>

#include <barrier>
#include <filesystem>
#include <thread>

#include "stores/redis/layout.hpp"
#include "support/proxied_redis.hpp"

using namespace std::chrono_literals;
namespace fs = std::filesystem;

namespace holdfast::test {

namespace {

// What is free within it was given back: nothing here expires in a test's time.
const lock_options kept{.ttl = 60s, .renew = false};

}  // namespace

class FrozenConnection : public testing::Test {
 protected:
  void SetUp() override {
    load_scripts(server);
    fs::create_symlink(proxy_socket(), way);
  }
  [[nodiscard]] std::string url() const { return std::string{scheme} + way; }
  [[nodiscard]] std::string proxy_socket() const { return proxy.url().substr(scheme.size()); }

  // Connections that were made so far hear nothing more, and are not told; new ones work.
  void freeze() {
    proxy.stall_requests(true);
    proxy.stall_replies(true);
    fs::remove(way);
    fs::create_symlink(server.socket_path(), way);
    // Once the proxy has taken this one, what is sent on the others comes too late to slip through.
    const auto made = proxy.connections_made();
    const int fd = connect_to({proxy_socket(), 0});
    EXPECT_TRUE(eventually([&] { return proxy.connections_made() > made; }));
    ::close(fd);
  }
  [[nodiscard]] bool exists(const std::string& key) const {
    return server.command({"EXISTS", key}) == "1";
  }

  static constexpr std::string_view scheme = "unix:";
  redis_server server;
  fault_proxy proxy{server.where()};
  temp_dir folder;
  const std::string way = folder.file("way.sock");
};

TEST_F(FrozenConnection, ReleaseIsTriedOnANewOneWithinItsBudget) {
  client c{url(), {.lock = kept, .release_budget = 10s}};
  {
    const lease held = c.mutex("orders").acquire();
    freeze();
  }
  EXPECT_TRUE(eventually([&] { return !exists("orders"); }));
  auto again = c.mutex("orders").try_acquire();
  ASSERT_TRUE(again);
  EXPECT_EQ(c.counters().unknown_outcomes, 0U);
  EXPECT_TRUE(again->release());
}

TEST_F(FrozenConnection, AskThatMetItIsTheLastToDoSo) {
  client c{url(), {.lock = kept, .operation_timeout = 1s, .release_budget = 10s}};
  mutex orders = c.mutex("orders");
  {
    const lease held = orders.acquire();
    freeze();
  }
  std::optional<lease> got;
  int failed = 0;
  ASSERT_TRUE(eventually([&] {
    failed += thrown_by([&] { got = orders.try_acquire(); }) == errc{} ? 0 : 1;
    return got.has_value();
  }));
  EXPECT_LE(failed, 1) << "the one that went behind the release, onto the frozen connection";
  EXPECT_TRUE(got->release());
  EXPECT_FALSE(exists("orders"));
}

TEST_F(FrozenConnection, WaitingAskGetsTheLock) {
  client c{url(), {.lock = kept, .operation_timeout = 1s, .release_budget = 10s}};
  mutex orders = c.mutex("orders");
  {
    const lease held = orders.acquire();
    freeze();
  }
  EXPECT_TRUE(orders.try_acquire(patience));
}

// Beside others who want the lock, an ask waits until its client's last release is answered; it did
// so for ever, on a connection where no answer comes.
TEST_F(FrozenConnection, AskOfAClientThatHandedOverBeforeIsTheLastToMeetIt) {
  client other{server.url(), {.lock = kept}};
  client c{url(), {.lock = kept, .operation_timeout = 1s, .release_budget = 10s}};
  mutex orders = c.mutex("orders");
  for (int i = 0; i < 2; ++i) {
    std::optional<lease> held = orders.acquire();
    std::thread waits{[&] { static_cast<void>(other.mutex("orders").acquire().release()); }};
    EXPECT_TRUE(eventually([&] { return exists(stores::redis::lock_keys{"orders"}.queue); }));
    held.reset();  // given straight to the other
    waits.join();
  }
  {
    const lease held = orders.acquire();
    freeze();
  }
  std::optional<lease> got;
  int failed = 0;
  ASSERT_TRUE(eventually([&] {
    failed += thrown_by([&] { got = orders.try_acquire(); }) == errc{} ? 0 : 1;
    return got.has_value();
  }));
  EXPECT_LE(failed, 1);
  EXPECT_TRUE(got->release());
}

// As above, but no connection that the client has works any more.
TEST_F(FrozenConnection, AmongOthersThatFrozeDoesNotUseUpTheBudget) {
  constexpr int threads = 4;
  client c{url() + "?connections=4", {.lock = kept, .release_budget = 4s}};
  {
    std::vector<std::thread> all;
    std::barrier together{threads};
    proxy.delay_replies(50ms);  // so that each needs a connection of its own
    for (int i = 0; i < threads; ++i) {
      all.emplace_back([&, i] {
        together.arrive_and_wait();
        EXPECT_TRUE(c.mutex("lock/" + std::to_string(i)).acquire().release());
      });
    }
    for (std::thread& t : all)
      t.join();
    ASSERT_GT(proxy.connections_made(), 2U);
  }
  {
    const lease held = c.mutex("orders").acquire();
    freeze();
  }
  EXPECT_TRUE(eventually([&] { return !exists("orders"); }, 10s));
}

}  // namespace holdfast::test
