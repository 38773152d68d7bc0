// A message that came right behind the answer to SUBSCRIBE was read together with it, and looked at
// only when the next one came: a grant that was sent then was neither used nor given back.
#include <future>

#include "integration/queue_fixture.hpp"

using namespace std::chrono_literals;

namespace holdfast::test {

class MessageBehindSubscription : public Queue {};

TEST_F(MessageBehindSubscription, IsReadAtOnce) {
  client c = through_proxy({.operation_timeout = 30s});
  const lease held = direct().mutex("orders").acquire();
  auto waits = wait_for(c);
  ASSERT_TRUE(eventually([&] { return waiting() == 1; }));
  const auto entry = server.command({"LINDEX", keys.queue, "0"});
  const std::string inbox{stores::redis::queue_entry::parse(entry)->inbox};

  const auto asked = proxy.seen("SUBSCRIBE");
  // The answer arrives when the message is behind it.
  proxy.inject(fault::hold_reply, "SUBSCRIBE");
  ASSERT_NE(server.command({"CLIENT", "KILL", "TYPE", "pubsub"}), "0");
  ASSERT_TRUE(proxy.await_request("SUBSCRIBE", asked + 1));
  const std::string id(32, 'a');
  ASSERT_EQ(server.command({"SET", "others", id + ";holdfast=1;token=5;block=1;since=0;host=h",
                            "PX", "600000"}),
            "OK");
  ASSERT_TRUE(eventually([&] {
    return server.command({"PUBLISH", inbox, id + ";5;600000;1;others"}) == "1";
  }));
  proxy.let_go();
  EXPECT_TRUE(eventually([&] { return !exists("others"); })) << "given back";
  c.stop();
}

}  // namespace holdfast::test
