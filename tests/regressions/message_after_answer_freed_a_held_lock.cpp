// A waiter's own question and the message with its grant crossed: the answer said "granted", and
// the message, read later by another waiter of the same client, was taken for a grant that nobody
// wants and given back. The lock was free while its holder worked. (Found by the simulator.)
#include <future>

#include "stores/redis/layout.hpp"
#include "support/proxied_redis.hpp"

using namespace std::chrono_literals;

namespace holdfast::test {

class MessageAfterAnswer : public proxied_redis {
 protected:
  // Waits for a lock that a foreign client holds, which is waited for by looking.
  std::future<std::optional<lease>> queue_up(client& c, const std::string& name) {
    EXPECT_EQ(server.command({"SET", name, "somebody", "PX", "60000"}), "OK");
    auto wait =
        std::async(std::launch::async, [&c, name] { return c.mutex(name).try_acquire(patience); });
    const stores::redis::lock_keys keys{name};
    EXPECT_TRUE(eventually([&] { return server.command({"LLEN", keys.queue}) == "1"; }));
    return wait;
  }
};

TEST_F(MessageAfterAnswer, LeavesTheHolderAlone) {
  client c = direct();
  auto wait = queue_up(c, "orders");
  const stores::redis::lock_keys keys{"orders"};
  const auto entry = server.command({"LINDEX", keys.queue, "0"});
  ASSERT_EQ(server.command({"DEL", "orders"}), "1");
  auto held = wait.get();
  ASSERT_TRUE(held);

  auto other = queue_up(c, "reports");  // who reads what comes for all
  const std::string inbox{stores::redis::queue_entry::parse(entry)->inbox};
  const auto message = entry.substr(0, 32) + ";" + to_string(held->token()) + ";5000;1;orders";
  ASSERT_EQ(server.command({"PUBLISH", inbox, message}), "1");
  ASSERT_EQ(server.command({"DEL", "reports"}), "1");
  ASSERT_TRUE(other.get());
  EXPECT_TRUE(held->release()) << "it was given back behind its holder's back";
}

}  // namespace holdfast::test
