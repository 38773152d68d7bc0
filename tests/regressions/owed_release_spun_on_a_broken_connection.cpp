// A connection broke after its greeting, when a release that was owed to the node was about to be
// sent on it. The release was owed again, and sent again, for ever: the thread that connects spun
// until the release's TTL was over, and the node was not connected to. Found by the simulator.
#include <gtest/gtest.h>

#include "runtime/background.hpp"
#include "runtime/clock.hpp"
#include "stores/redlock/node_connection.hpp"
#include "support/process.hpp"
#include "support/redis_server.hpp"

using namespace std::chrono_literals;

namespace holdfast::test {

namespace {

using runtime::io_outcome;
using stores::redlock::node_connection;

// Takes one request, and breaks under the next.
class short_lived final : public runtime::stream {
 public:
  explicit short_lived(std::unique_ptr<stream> over) : over_{std::move(over)} {}

  io_outcome send_some(std::string_view bytes) noexcept override {
    return std::exchange(used_, true) ? io_outcome{0, false, ECONNRESET} : over_->send_some(bytes);
  }
  io_outcome receive_some(char* into, std::size_t room) noexcept override {
    return over_->receive_some(into, room);
  }
  io_outcome peek() noexcept override { return over_->peek(); }
  int fd() const noexcept override { return over_->fd(); }
  bool wake_at(int bytes) noexcept override { return over_->wake_at(bytes); }
  bool tells(std::function<void()> readable) override { return over_->tells(std::move(readable)); }
  void shut_down() noexcept override { over_->shut_down(); }

 private:
  const std::unique_ptr<stream> over_;
  bool used_ = false;
};

// To a real server; its first connection breaks under the request behind the greeting.
class first_breaks final : public stores::redis::dialer {
 public:
  explicit first_breaks(const std::string& socket_path)
      : dialer{"node"}, to_{stores::redis::make_dialer(endpoint_at(socket_path))} {}

  void dial(core::time_point until, on_connected done) override {
    to_->dial(until, [this, &done](auto over) {
      if (over && !std::exchange(broke_, true)) {
        return done(std::make_unique<short_lived>(std::move(*over)));
      }
      done(std::move(over));
    });
  }

 private:
  static stores::redis::endpoint endpoint_at(const std::string& path) {
    stores::redis::endpoint where;
    where.node = "node";
    where.connect = [path](core::time_point until) { return runtime::connect_unix(path, until); };
    return where;
  }

  const std::shared_ptr<dialer> to_;
  bool broke_ = false;
};

}  // namespace

TEST(NodeConnection, ConnectsAgainForAReleaseThatIsOwed) {
  redis_server server;
  const auto connecting = std::make_shared<runtime::background>(1);
  const auto node = std::make_shared<node_connection>(
      std::make_shared<first_breaks>(server.socket_path()), 500ms, connecting,
      node_connection::hooks{.identify = [](auto) { return std::string{"run"}; }});
  stores::redis::command release{3};
  release.arg("SET").arg("given").arg("back");
  node->send_for_sure(stores::redlock::request{release}, core::after(runtime::now(), 10min),
                      nullptr);
  EXPECT_TRUE(eventually([&] { return server.command({"GET", "given"}) == "back"; }));
  node->close();
  connecting->stop();
}

}  // namespace holdfast::test
