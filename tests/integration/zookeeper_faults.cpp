// zookeeper:// against real servers that die, lead, pause and forget, and a network that loses
// replies.
#include <sys/types.h>
#include <zookeeper/zookeeper.h>

#include <atomic>
#include <future>
#include <optional>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <holdfast/holdfast.hpp>

#include "runtime/random.hpp"
#include "stores/zookeeper/contender.hpp"
#include "support/holder_process.hpp"
#include "support/open_client.hpp"
#include "support/watch.hpp"
#include "support/zookeeper_ensemble.hpp"
#include "support/zookeeper_proxy.hpp"
#include "support/zookeeper_raw.hpp"

using namespace std::chrono_literals;

namespace holdfast::test {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

namespace {

class Zookeeper : public testing::Test {
 protected:
  static zookeeper_ensemble& servers() {
    static zookeeper_ensemble three{3};
    return three;
  }
  [[nodiscard]] std::string url() const { return servers().url(chroot); }
  [[nodiscard]] std::string url_by(const zookeeper_proxy& proxy) const {
    return "zookeeper://127.0.0.1:" + std::to_string(proxy.port()) + chroot +
           "?tick=" + std::to_string(zookeeper_ensemble::tick.count());
  }
  [[nodiscard]] std::string path(const std::string& name) const { return chroot + "/" + name; }

  const std::string chroot = fresh_chroot();
  raw_zookeeper raw{servers().hosts()};
};

using waited = std::future<std::optional<lease>>;
waited wait_for(client& c, const std::string& name) {
  return std::async(std::launch::async, [&c, name] { return c.mutex(name).try_acquire(patience); });
}
bool come_to_wait(client& looks, const std::string& name, std::size_t count) {
  return eventually([&] { return looks.status(name).waiting == count; });
}

}  // namespace

// ---- servers ------------------------------------------------------------------------------------

// Each of the three in turn, so that it is the one the client is connected to, and the leader.
TEST_F(Zookeeper, LeaseOutlivesAnyOneServer) {
  client c = open_client(url(), {.lock = {.ttl = 20'000ms}});
  lease held = c.mutex("orders").acquire();
  const auto nodes = raw.children(path("orders"));
  ASSERT_THAT(nodes, SizeIs(1));
  for (std::size_t i = 0; i < servers().size(); ++i) {
    servers().kill(i);
    ASSERT_TRUE(eventually([&] { return held.renew().has_value(); })) << i;
    servers().restart(i);
  }
  EXPECT_TRUE(held.held());
  EXPECT_EQ(raw.children(path("orders")), nodes) << "the session and its node went on";
  EXPECT_TRUE(held.release());
}

TEST_F(Zookeeper, LocksExcludeThroughAChangeOfTheLeader) {
  std::atomic<int> inside{0};
  std::atomic<int> rounds{0};
  std::atomic<bool> over{false};
  std::atomic<std::uint64_t> last{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      client c =
          open_client(url(), {.lock = {.ttl = 20'000ms}, .unreachable_limit = as_long_as_waiting});
      while (!over) {
        auto held = c.mutex("orders").try_acquire(patience);
        if (!held) continue;
        EXPECT_EQ(++inside, 1);
        EXPECT_GT(held->token().value(), last.exchange(held->token().value()));
        --inside;
        ++rounds;
      }
    });
  }
  const auto went_on = [&](int more) {
    const int before = rounds;
    return eventually([&] { return rounds >= before + more; });
  };
  EXPECT_TRUE(went_on(20));
  const auto leads = servers().leader();
  EXPECT_TRUE(leads);
  servers().kill(*leads);
  EXPECT_TRUE(went_on(20));
  servers().restart(*leads);
  EXPECT_TRUE(went_on(20));
  over = true;
  for (auto& one : threads)
    one.join();
}

// A server that answers reads and has lost its ensemble: nothing that it says makes a lease longer.
TEST_F(Zookeeper, ReadsOfAServerThatIsCutOffRenewNothing) {
  auto& all = servers();
  const auto leads = all.leader().value();
  const std::size_t mine = leads == 0 ? 1 : 0;
  client c = open_client("zookeeper://127.0.0.1:" + std::to_string(all.port(mine)) + chroot +
                             "?tick=" + std::to_string(zookeeper_ensemble::tick.count()),
                         {.lock = {.ttl = 3'000ms}});
  lease held = c.mutex("orders").acquire();
  watched_token lost{held.lost()};
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (i != mine) all.pause(i);
  }
  EXPECT_TRUE(lost.wait());
  EXPECT_EQ(held.why_lost(), loss::expired);
  all.resume_all();
}

// ---- sessions -----------------------------------------------------------------------------------

// Scenario I: the session of a paused client expires, and for a while both believe. The gate, which
// has seen the higher token, turns the first away.
TEST_F(Zookeeper, PausedHoldersWriteIsTurnedAwayByTheFence) {
  holder_process paused{url(), "orders", 2'000ms};
  ASSERT_EQ(::kill(paused.child().pid(), SIGSTOP), 0);
  client c = open_client(url(), {.lock = {.ttl = 20'000ms}});
  auto next = c.mutex("orders").try_acquire(patience);
  ASSERT_TRUE(next);
  EXPECT_GT(next->token(), paused.token()) << "czxids";
  fence::gate resource;
  EXPECT_TRUE(resource.accept(next->token()));
  ASSERT_EQ(::kill(paused.child().pid(), SIGCONT), 0);
  EXPECT_FALSE(resource.accept(paused.token()));
  paused.tell("query");
  EXPECT_THAT(paused.hear("query"), HasSubstr("lost"));
  paused.tell("release");
  EXPECT_THAT(paused.hear("release"), HasSubstr("lease_lost"));
  EXPECT_TRUE(next->renew()) << "what it did touched nothing of its successor's";
}

// Scenario 33: what looks like the attempt's own node belongs to a session that ended, so it is
// about to go and holds nothing.
TEST_F(Zookeeper, NodeOfAnEndedSessionIsNotTakenForOnesOwn) {
  namespace zk = stores::zookeeper;
  const auto id = runtime::fresh_owner();
  const auto dying = raw.create(path("orders") + "/" + zk::name_to_create(id, zk::node_kind::mutex),
                                "", ZOO_EPHEMERAL_SEQUENTIAL);
  const auto background = std::make_shared<runtime::background>(2);
  const auto on = std::make_shared<zk::connection>(zk::handle::config{.servers = servers().hosts()},
                                                   zookeeper_ensemble::tick / 2, background);
  const auto mine =
      zk::contender::made_elsewhere(on, {path("orders"), zk::node_kind::mutex}, id, 10s);
  std::promise<result<core::answer>> told;
  mine->ask([&](result<core::answer> got) { told.set_value(std::move(got)); });
  const auto got = told.get_future().get();
  ASSERT_TRUE(got);
  const auto* granted = std::get_if<core::grant>(&*got);
  ASSERT_NE(granted, nullptr);
  EXPECT_FALSE(raw.exists(dying));
  const auto node = raw.get(mine->held().path);
  ASSERT_TRUE(node);
  EXPECT_EQ(node->session, mine->held().in->id());
  EXPECT_EQ(granted->token.value(), static_cast<std::uint64_t>(node->czxid));
  on->close();
  background->stop();
}

TEST_F(Zookeeper, WaiterStaysInTheQueueThroughReconnects) {
  zookeeper_proxy proxy{servers().port(0)};
  client a = open_client(url(), {.lock = {.ttl = 20'000ms}});
  client b = open_client(url_by(proxy), {.lock = {.ttl = 20'000ms}});
  lease held = a.mutex("orders").acquire();
  auto next = wait_for(b, "orders");
  ASSERT_TRUE(come_to_wait(a, "orders", 1));
  const auto nodes = raw.children(path("orders"));
  proxy.cut_all();
  proxy.stall(true);
  EXPECT_TRUE(held.release());  // the event is lost with the connection
  proxy.cut_all();
  proxy.stall(false);
  const auto got = next.get();
  ASSERT_TRUE(got);
  const auto now_there = raw.children(path("orders"));
  ASSERT_THAT(now_there, SizeIs(1));
  EXPECT_THAT(nodes, testing::Contains(now_there.front())) << "the node it had";
}

// ---- lost replies -------------------------------------------------------------------------------

// Scenario 32, first by hand: who creates again after a lost reply waits for itself.
TEST_F(Zookeeper, CreationWhoseReplyIsLostIsRecognised) {
  namespace zk = stores::zookeeper;
  zookeeper_proxy proxy{servers().port(0)};
  {
    raw_zookeeper naive{"127.0.0.1:" + std::to_string(proxy.port())};
    naive.create(path("naive") + "/x", "", ZOO_EPHEMERAL);
    proxy.lose_reply_to("lock-");
    EXPECT_ANY_THROW(naive.create(path("naive") + "/lock-", "", ZOO_EPHEMERAL_SEQUENTIAL));
    const auto again = naive.create(path("naive") + "/lock-", "", ZOO_EPHEMERAL_SEQUENTIAL);
    const auto queue = zk::queue_of(raw.children(path("naive")));
    ASSERT_THAT(queue, SizeIs(2)) << "both its own";
    EXPECT_NE(path("naive") + "/" + queue.front().name, again) << "and it has the second";
  }
  client c = open_client(url_by(proxy), {.lock = {.ttl = 20'000ms}});
  { const lease warm = c.mutex("warm").acquire(); }
  proxy.lose_reply_to("-lock-");
  lease held = c.mutex("orders").acquire(patience);
  EXPECT_EQ(proxy.lost(), 2U);
  const auto nodes = raw.children(path("orders"));
  ASSERT_THAT(nodes, SizeIs(1)) << "found, not made again";
  EXPECT_EQ(held.token().value(),
            static_cast<std::uint64_t>(raw.get(path("orders") + "/" + nodes[0])->czxid));
  EXPECT_TRUE(held.release());
  EXPECT_THAT(raw.children(path("orders")), SizeIs(0));
}

TEST_F(Zookeeper, ReleaseWhoseReplyIsLostFreesTheLockOnce) {
  zookeeper_proxy proxy{servers().port(0)};
  client c = open_client(url_by(proxy), {.lock = {.ttl = 20'000ms}});
  lease held = c.mutex("orders").acquire();
  const auto node = raw.children(path("orders")).at(0);
  proxy.lose_reply_to(node);
  static_cast<void>(held.release());
  EXPECT_EQ(proxy.lost(), 1U);
  EXPECT_THAT(raw.children(path("orders")), SizeIs(0));
  EXPECT_TRUE(c.mutex("orders").try_acquire(patience));
}

// Of an attempt that gave up while nobody answered: its node must not stay for as long as its
// client does.
TEST_F(Zookeeper, AttemptThatGaveUpUnansweredLeavesNothingBehind) {
  zookeeper_proxy proxy{servers().port(0)};
  client c = open_client(
      url_by(proxy),
      {.lock = {.ttl = 20'000ms}, .operation_timeout = 200ms, .unreachable_limit = 400ms});
  lease other = c.mutex("other").acquire();
  proxy.stall(true);
  EXPECT_EQ(thrown_by([&] { (void)c.mutex("orders").acquire(); }), errc::outcome_unknown);
  proxy.stall(false);
  client looks = open_client(url(), {.lock = {.ttl = 20'000ms}});
  EXPECT_TRUE(looks.mutex("orders").try_acquire(patience));
  EXPECT_TRUE(eventually([&] { return raw.children(path("orders")).empty(); }));
  EXPECT_TRUE(other.held()) << "its session is the same";
}

// ---- nodes --------------------------------------------------------------------------------------

// Scenario 34.
TEST_F(Zookeeper, WaiterWhosePathIsDeletedQueuesAgain) {
  client a = open_client(url(), {.lock = {.ttl = 3'000ms}});
  client b = open_client(url(), {.lock = {.ttl = 20'000ms}});
  lease held = a.mutex("orders").acquire();
  watched_token lost{held.lost()};
  auto next = wait_for(b, "orders");
  ASSERT_TRUE(come_to_wait(a, "orders", 1));
  raw.remove_all(path("orders"));
  const auto got = next.get();
  ASSERT_TRUE(got);
  EXPECT_GT(got->token(), held.token());
  EXPECT_TRUE(lost.wait());
  EXPECT_EQ(held.why_lost(), loss::deleted);
}

TEST_F(Zookeeper, EachWaiterWatchesTheOneBeforeIt) {
  client a = open_client(url(), {.lock = {.ttl = 20'000ms}});
  client b = open_client(url(), {.lock = {.ttl = 20'000ms}});
  client c = open_client(url(), {.lock = {.ttl = 20'000ms}});
  lease held = a.mutex("orders").acquire();
  auto second = wait_for(b, "orders");
  ASSERT_TRUE(come_to_wait(a, "orders", 1));
  auto third = wait_for(c, "orders");
  ASSERT_TRUE(come_to_wait(a, "orders", 2));
  EXPECT_TRUE(held.release());
  auto got = second.get();
  ASSERT_TRUE(got);
  EXPECT_EQ(third.wait_for(0s), std::future_status::timeout);
  EXPECT_TRUE(got->release());
  EXPECT_TRUE(third.get());
}

TEST_F(Zookeeper, OtherClientsOfTheRecipeAreWaitedForAndShown) {
  client c = open_client(url(), {.lock = {.ttl = 20'000ms}});
  const auto curators =
      raw.create(path("orders") + "/_c_8a2c1e9e-3b1f-4f6a-9d55-1f0c55b1b111-lock-", "192.0.2.7",
                 ZOO_EPHEMERAL_SEQUENTIAL);
  auto next = wait_for(c, "orders");
  client looks = open_client(url(), {.lock = {.ttl = 20'000ms}});
  ASSERT_TRUE(come_to_wait(looks, "orders", 1));
  const auto seen = looks.status("orders");
  EXPECT_TRUE(seen.holder.value().foreign);
  EXPECT_EQ(seen.holder->value, "192.0.2.7");
  EXPECT_TRUE(raw.remove(curators));
  EXPECT_TRUE(next.get());
}

TEST_F(Zookeeper, EmptyPathsGo) {
  {
    client c = open_client(url(), {.lock = {.ttl = 20'000ms}});
    EXPECT_TRUE(c.mutex("orders/2026/42").acquire().release());
    EXPECT_TRUE(raw.exists(path("orders/2026/42")));
  }
  EXPECT_TRUE(eventually([&] { return !raw.exists(chroot); })) << "containers, each in turn";
}

// ---- access -------------------------------------------------------------------------------------

TEST_F(Zookeeper, LocksOfAUserAreClosedToOthers) {
  const auto place = url().substr(std::string{"zookeeper://"}.size());
  client mine = open_client("zookeeper://alice:s3cret@" + place, {.lock = {.ttl = 20'000ms}});
  lease held = mine.mutex("orders").acquire();
  client also_mine = open_client("zookeeper://alice:s3cret@" + place);
  EXPECT_FALSE(also_mine.mutex("orders").try_acquire());
  for (const auto* who : {"", "mallory:s3cret@", "alice:wr0ng@"}) {
    client other = open_client("zookeeper://" + std::string{who} + place);
    std::string what;
    EXPECT_EQ(thrown_by([&] { (void)other.mutex("orders").try_acquire(); }, &what),
              errc::not_permitted);
    EXPECT_THAT(what, HasSubstr("access list"));
    EXPECT_THAT(what, testing::Not(HasSubstr("cret")));
  }
  EXPECT_TRUE(held.release());
}

}  // namespace holdfast::test
