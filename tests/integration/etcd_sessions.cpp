// The leases of etcd's that the locks of one client are kept by: who opens them, and who waits.
#include <optional>

#include "etcd_fixture.hpp"
#include "runtime/background.hpp"
#include "runtime/clock.hpp"
#include "stores/component.hpp"

using namespace std::chrono_literals;

namespace holdfast::test {

// One thread asks for both: it must not wait for a lease that it has to open itself.
TEST_F(Etcd, LocksTakenTogetherGetANewLeaseWhenTheirsHasEnded) {
  client c{url(), {.lock = {.ttl = 2s}, .operation_timeout = 10s}};
  const auto before = c.mutex("before").acquire();
  end_lease("before", 0);
  let_pass(500ms);  // so long that the lease is kept alive before it is used
  const auto both = acquire_all_result({c.mutex("orders"), c.mutex("stock")}, 0s);
  ASSERT_TRUE(both) << both.error().message;
  EXPECT_EQ(lease_of("orders"), lease_of("stock"));
}

// As an event loop that is busy with something else, or that was ended.
TEST_F(Etcd, CallerThatDoesNotComeBackKeepsNobodyElseWaiting) {
  const auto background = std::make_shared<runtime::background>(2);
  stores::component_config config;
  for (std::size_t i = 0; i < cluster.size(); ++i)
    config.servers.push_back({"127.0.0.1", cluster.port(i)});
  config.prefix = prefix;
  auto store = holdfast_component_etcd()->open(std::move(config), background).value();
  store->on_events({});
  const auto orders = *store->open("orders", {});
  const auto stock = *store->open("stock", {});
  const auto until = runtime::now() + patience;

  stores::blocking_caller gone;  // run() is never called
  const auto first = orders->begin({.ttl = 60s});
  first->ask(until, gone, [](const auto&) {});
  const auto second = stock->begin({.ttl = 60s});
  const auto got = stores::wait_here<result<core::answer>>(
      [&](auto& by, auto done) { second->ask(until, by, std::move(done)); });
  ASSERT_TRUE(got) << got.error().message;
  EXPECT_TRUE(std::holds_alternative<core::grant>(*got));
  store->close();
  background->stop();
}

}  // namespace holdfast::test
