// Beside clients of other kinds on the same key: SET NX PX in a loop, a compare-and-delete, no
// queue.
#include <atomic>
#include <future>
#include <thread>

#include "stores/redis/layout.hpp"
#include "support/proxied_redis.hpp"

using namespace std::chrono_literals;

namespace holdfast::test {
namespace {

class ForeignClients : public proxied_redis {
 protected:
  [[nodiscard]] client sharing() const { return client{server.url() + "?foreign=share"}; }

  // Two clients of ours that hand the lock over to each other all the time.
  class crowd {
   public:
    template <class Make>
    explicit crowd(Make make) {
      for (auto& one : workers_) {
        one = std::jthread{[this, make](const std::stop_token& stop) {
          client mine = make();
          auto lock = mine.mutex("orders");
          while (!stop.stop_requested()) {
            const lease held = lock.acquire();
            ++turns_;
          }
        }};
      }
    }
    [[nodiscard]] int turns() const { return turns_; }

   private:
    std::atomic<int> turns_{0};
    std::array<std::jthread, 3> workers_;
  };

  [[nodiscard]] bool foreign_gets_it() const {
    return server.command({"SET", "orders", "foreign", "NX", "PX", "60000"}) == "OK";
  }
  void foreign_gives_it_back() const { ASSERT_EQ(server.command({"DEL", "orders"}), "1"); }
  [[nodiscard]] long waiting() const { return std::stol(server.command({"LLEN", keys.queue})); }

  const stores::redis::lock_keys keys{"orders"};
};

TEST_F(ForeignClients, PollerGetsItsTurnWithShareAndOursGoOnAfterIt) {
  const crowd ours{[this] { return sharing(); }};
  for (int turn = 0; turn < 3; ++turn) {
    ASSERT_TRUE(eventually([&] { return foreign_gets_it(); })) << "turn " << turn;
    const int before = ours.turns();
    EXPECT_EQ(server.command({"GET", "orders"}), "foreign") << "ours never touch a foreign lock";
    foreign_gives_it_back();
    ASSERT_TRUE(eventually([&] { return ours.turns() > before + 10; }));
  }
}

// The negative control, and what docs/guarantees.md says of it.
TEST_F(ForeignClients, PollerStarvesWithoutShare) {
  const crowd ours{[this] { return direct(); }};
  ASSERT_TRUE(eventually([&] { return waiting() > 0; }));
  // Tries only while somebody of ours is queued: in between, the lock may really be free.
  const std::string poll =
      "if redis.call('LLEN', KEYS[2]) == 0 then return 'nobody' end "
      "return redis.call('SET', KEYS[1], 'foreign', 'NX') and 'got it' or 'busy'";
  int tries = 0;
  const int enough = ours.turns() + 500;
  while (ours.turns() < enough) {
    const auto said = server.command({"EVAL", poll, "2", "orders", keys.queue});
    ASSERT_NE(said, "got it") << "at try " << tries;
    tries += said == "busy" ? 1 : 0;
  }
  EXPECT_GT(tries, 0);
}

// As parts/leave_room.lua would: the lock is free, somebody waits, and it is not for us yet.
TEST_F(ForeignClients, RoomIsNotTakenByOursBeforeItIsOver) {
  client waits = direct();
  ASSERT_TRUE(foreign_gets_it());
  auto wait =
      std::async(std::launch::async, [&] { return waits.mutex("orders").try_acquire(patience); });
  ASSERT_TRUE(eventually([&] { return waiting() == 1; }));
  const auto seconds = server.command({"TIME"});
  const auto now = std::stoll(seconds.substr(0, seconds.find('\n'))) * 1000;
  static_cast<void>(server.command({"HSET", keys.waiters, "room", std::to_string(now + 1900)}));
  foreign_gives_it_back();
  client other = direct();
  EXPECT_FALSE(other.mutex("orders").try_acquire()) << "free, but not for us";
  ASSERT_NE(wait.wait_for(300ms), std::future_status::ready);
  EXPECT_FALSE(exists("orders"));
  static_cast<void>(server.command({"HSET", keys.waiters, "room", "1"}));
  EXPECT_TRUE(wait.get());
}

TEST_F(ForeignClients, NothingIsLeftBehindByRoom) {
  {
    const crowd ours{[this] { return sharing(); }};
    ASSERT_TRUE(eventually([&] { return foreign_gets_it(); }));
    foreign_gives_it_back();
  }
  EXPECT_TRUE(eventually([&] {
    return server.command({"EXISTS", "orders", keys.queue, keys.waiters}) == "0";
  })) << server.command({"HGETALL", keys.waiters});
}

// The first in line gives up while the lock is kept free: the next one must still hear of its end.
TEST_F(ForeignClients, WaiterThatLeavesDuringRoomTellsTheNext) {
  client gives_up = direct();
  client stays = direct();
  ASSERT_TRUE(foreign_gets_it());
  std::stop_source stop;
  auto first = std::async(std::launch::async, [&] {
    return gives_up.mutex("orders").try_acquire(patience, stop.get_token());
  });
  ASSERT_TRUE(eventually([&] { return waiting() == 1; }));
  auto second =
      std::async(std::launch::async, [&] { return stays.mutex("orders").try_acquire(patience); });
  ASSERT_TRUE(eventually([&] { return waiting() == 2; }));
  const auto seconds = server.command({"TIME"});
  const auto now = std::stoll(seconds.substr(0, seconds.find('\n'))) * 1000;
  static_cast<void>(server.command({"HSET", keys.waiters, "room", std::to_string(now + 1500)}));
  foreign_gives_it_back();
  stop.request_stop();
  EXPECT_FALSE(first.get());
  EXPECT_TRUE(second.get());
}

}  // namespace
}  // namespace holdfast::test
