// A waiter was answered that it had been granted the lock while another of its client opened the
// inbox anew: the server had subscribed, but its word of that was still on its way. The message
// about the grant came right behind it, looked like a grant that nobody waits for, and was given
// back: the holder's own client released its lock. The simulator's seed 1572307723.
#include <future>

#include "client/open_store.hpp"
#include "client/url.hpp"
#include "runtime/clock.hpp"
#include "stores/redis/layout.hpp"
#include "support/proxied_redis.hpp"

using namespace std::chrono_literals;

namespace holdfast::test {

class OpeningInbox : public proxied_redis {
 protected:
  OpeningInbox() { store_->on_events({}); }
  ~OpeningInbox() override {
    store_->close();
    background_->stop();
  }
  [[nodiscard]] std::unique_ptr<stores::attempt> begin() const {
    return lock_->begin({.ttl = 60s, .may_wait = true, .claim_ttl = 30s});
  }
  [[nodiscard]] static result<core::answer> ask(stores::attempt& who) {
    return stores::wait_here<result<core::answer>>(
        [&](auto& by, auto done) { who.ask(soon(), by, std::move(done)); });
  }
  [[nodiscard]] static core::time_point soon() { return runtime::now() + patience; }

  const std::shared_ptr<runtime::background> background_ = std::make_shared<runtime::background>(2);
  const std::unique_ptr<stores::store> store_ =
      detail::open_store(*detail::parse_url(proxy.url()), background_).value();
  const std::shared_ptr<stores::store_lock> lock_ = *store_->open("orders");
};

TEST_F(OpeningInbox, KeepsAGrantThatWasAnsweredMeanwhile) {
  auto before = direct().mutex("orders").acquire();
  const auto first = begin();
  const auto queued = ask(*first);
  ASSERT_TRUE(queued && std::get<core::busy>(*queued).queued);
  const stores::redis::lock_keys keys{"orders"};
  const auto text = server.command({"LINDEX", keys.queue, "0"});
  const std::string inbox{stores::redis::queue_entry::parse(text)->inbox};

  // The inbox is lost, and opened anew for a second waiter, whom the answer does not reach yet.
  const auto subscribed = proxy.seen("SUBSCRIBE");
  proxy.inject(fault::hold_reply, "SUBSCRIBE");
  ASSERT_EQ(server.command({"CLIENT", "KILL", "TYPE", "pubsub"}), "1");
  static_cast<void>(stores::wait_here<std::optional<core::grant>>(
      [&](auto& by, auto done) { first->wait(soon(), by, std::move(done)); }));
  const auto second = begin();
  auto asked = std::async(std::launch::async, [&] { return ask(*second); });
  ASSERT_TRUE(proxy.await_request("SUBSCRIBE", subscribed + 1));
  ASSERT_TRUE(eventually([&] {
    return server.command({"PUBSUB", "NUMSUB", inbox}) == inbox + "\n1";
  }));

  ASSERT_TRUE(before.release());
  const auto granted = ask(*first);
  ASSERT_TRUE(granted && std::holds_alternative<core::grant>(*granted));
  proxy.let_go();
  const auto met = asked.get();
  ASSERT_TRUE(met && std::holds_alternative<core::busy>(*met)) << "the first one holds it";
  store_->flush(soon());
  const auto extended = stores::wait_here<result<stores::renewal>>([&](auto& by, auto done) {
    lock_->extend(first->id(), std::get<core::grant>(*granted).token, 60s, soon(), by,
                  std::move(done));
  });
  EXPECT_TRUE(extended && extended->renewed) << "its own client gave it back";
}

}  // namespace holdfast::test
