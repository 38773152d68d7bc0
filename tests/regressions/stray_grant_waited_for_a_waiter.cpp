// A grant that was sent to an attempt which is gone was given back only when some thread of the
// client waited again, because nobody else reads what is sent.
#include <future>

#include "integration/queue_fixture.hpp"

using namespace std::chrono_literals;

namespace holdfast::test {

class StrayGrant : public Queue {};

TEST_F(StrayGrant, IsGivenBackAlsoWhenNobodyWaits) {
  client c = direct();
  {
    const lease held = direct().mutex("orders").acquire();
    std::stop_source stop;
    auto waits = std::async(std::launch::async, [&] {
      return c.mutex("orders").try_acquire(patience, stop.get_token());
    });
    ASSERT_TRUE(eventually([&] { return waiting() == 1; }));
    const auto entry = server.command({"LINDEX", keys.queue, "0"});
    stop.request_stop();
    ASSERT_FALSE(waits.get());
    const auto inbox = stores::redis::queue_entry::parse(entry)->inbox;
    const std::string id(32, 'a');
    ASSERT_EQ(server.command({"SET", "others", id + ";holdfast=1;token=5;block=1;since=0;host=h",
                              "PX", "600000"}),
              "OK");
    const auto heard = server.command({"PUBLISH", std::string{inbox}, id + ";5;600000;1;others"});
    // Unless the inbox was closed by now, so that no grant is ever sent there.
    if (heard == "1") {
      EXPECT_TRUE(eventually([&] { return !exists("others"); }));
    }
    EXPECT_TRUE(eventually([&] {
      return !server.command({"PUBSUB", "CHANNELS", "holdfast:*"}).starts_with("holdfast:");
    }));
  }
  // It is opened again when it is needed.
  lease held = direct().mutex("orders").acquire();
  auto again = wait_for(c);
  EXPECT_TRUE(eventually([&] { return waiting() == 1; }));
  EXPECT_TRUE(held.release());
  EXPECT_TRUE(again.get());
}

// More than one look at the inbox takes in.
TEST_F(StrayGrant, AllThatCameAreGivenBack) {
  client c = direct();
  const lease held = direct().mutex("orders").acquire();
  std::stop_source stop;
  auto waits = std::async(std::launch::async, [&] {
    return c.mutex("orders").try_acquire(patience, stop.get_token());
  });
  ASSERT_TRUE(eventually([&] { return waiting() == 1; }));
  const auto text = server.command({"LINDEX", keys.queue, "0"});
  const std::string inbox{stores::redis::queue_entry::parse(text)->inbox};
  stop.request_stop();
  ASSERT_FALSE(waits.get());
  const std::string many = "300";
  const auto heard = server.command(
      {"EVAL",
       "local heard = 0 "
       "for i = 1, ARGV[1] do"
       "  local key, id = 'others/' .. i, string.format('%032x', i) "
       "  redis.call('SET', key, id .. ';holdfast=1;token=5;block=1;since=0;host=h', 'PX', 600000) "
       "  heard = redis.call('PUBLISH', ARGV[2], id .. ';5;600000;1;' .. key) "
       "end return heard",
       "0", many, inbox});
  // Unless the inbox was closed by now, so that no grant is ever sent there.
  if (heard == "1") {
    EXPECT_TRUE(eventually([&] { return direct().list("others/*").empty(); }));
  }
}

// There is no connection to send the release on, and the first one that is made meets a server that
// is busy.
TEST_F(StrayGrant, IsGivenBackThoughTheReleaseIsRefusedAtFirst) {
  client c = through_proxy();
  client holder = direct();
  auto held = holder.mutex("orders").try_acquire();
  auto wait = wait_for(c);
  ASSERT_TRUE(eventually([&] { return waiting() == 1; }));
  const auto text = server.command({"LINDEX", keys.queue, "0"});
  const std::string inbox{stores::redis::queue_entry::parse(text)->inbox};
  const std::string id(32, 'a');
  const auto value = id + ";holdfast=1;token=5;block=1;since=0;host=h";
  ASSERT_EQ(server.command({"SET", "others", value, "PX", "600000"}), "OK");
  proxy.inject(fault::answer, value.substr(0, 50), 2, "-BUSY Redis is busy running a script.\r\n");
  ASSERT_EQ(server.command({"PUBLISH", inbox, id + ";5;600000;1;others"}), "1");
  EXPECT_TRUE(eventually([&] { return !exists("others"); }));
  EXPECT_EQ(c.counters().failures, 0U);
  held.reset();
  EXPECT_TRUE(wait.get());
}

}  // namespace holdfast::test
