// Whose turn it is on etcd://: among our own, beside etcdctl, and when keys go behind our back.
#include <csignal>
#include <future>

#include "etcd_fixture.hpp"

using namespace std::chrono_literals;

namespace holdfast::test {

namespace {

// A client that waits for "orders", in a thread of its own.
class waiter_of_orders {
 public:
  explicit waiter_of_orders(const std::string& url)
      : client_{url, {.lock = {.ttl = 60s}, .observer = seen_}} {
    got_ = std::async(std::launch::async, [this] {
      auto lease = client_.mutex("orders").try_acquire(patience, stop_.get_token());
      done_ = true;
      return lease;
    });
    EXPECT_TRUE(seen_->await(event::kind::waiting));
  }
  waiter_of_orders(const waiter_of_orders&) = delete;
  waiter_of_orders& operator=(const waiter_of_orders&) = delete;
  ~waiter_of_orders() { stop_.request_stop(); }
  [[nodiscard]] std::optional<lease> result() { return got_.get(); }
  [[nodiscard]] bool is_done() const { return done_; }

 private:
  const std::shared_ptr<recorder> seen_ = std::make_shared<recorder>();
  std::stop_source stop_;
  std::atomic<bool> done_{false};
  client client_;
  std::future<std::optional<lease>> got_;
};

}  // namespace

// Scenario 35.
TEST_F(Etcd, WaiterWhoseLeaseEndedInTheQueueIsNotServedWhenItsPredecessorLeaves) {
  auto first = make_client();
  auto held = first.mutex("orders").acquire();
  waiter_of_orders second{url()};
  ASSERT_TRUE(eventually([&] { return keys_of("orders") == 2; }));
  waiter_of_orders third{url()};
  ASSERT_TRUE(eventually([&] { return keys_of("orders") == 3; }));

  end_lease("orders", 1);
  ASSERT_TRUE(held.release());
  auto next = third.result();
  ASSERT_TRUE(next) << "whose turn it is, now that the second one has lost its place";
  EXPECT_FALSE(second.is_done());
  ASSERT_TRUE(next->release());
  const auto last = second.result();
  ASSERT_TRUE(last) << "it has come again, at the end";
  EXPECT_GT(last->token(), next->token());
}

// Scenario 36: both are under one lease of etcd's.
TEST_F(Etcd, TwoAttemptsOfOneClientAreTwoKeysUnderOneLease) {
  auto c = make_client();
  auto one = c.mutex("orders").try_acquire();
  ASSERT_TRUE(one);
  const auto other = c.mutex("stock").acquire();
  EXPECT_FALSE(c.mutex("orders").try_acquire());
  EXPECT_EQ(keys_of("orders"), 1U);
  EXPECT_EQ(lease_of("orders"), lease_of("stock"));
  ASSERT_TRUE(one->release());
  const auto again = c.mutex("orders").try_acquire();
  ASSERT_TRUE(again);
  EXPECT_EQ(lease_of("orders"), lease_of("stock")) << "no other lease was granted";
}

// Scenario 36: what is given back is the key of that revision, and no later one.
TEST_F(Etcd, ReleaseOfALostLockLeavesItsSuccessorAlone) {
  auto a = make_client();
  auto b = make_client();
  auto lost = a.mutex("orders").acquire();
  end_lease("orders", 0);
  const auto next = b.mutex("orders").acquire();
  const auto said = lost.release();
  ASSERT_FALSE(said);
  EXPECT_EQ(said.error().code, errc::lease_lost);
  EXPECT_EQ(keys_of("orders"), 1U);
  EXPECT_EQ(b.status("orders").holder.value().token, next.token());
}

// Long before any renewal, so only the watch can have told.
TEST_F(Etcd, HeldKeyThatIsDeletedIsToldAtOnce) {
  auto c = make_client();
  const auto held = c.mutex("orders").acquire();
  const auto other = c.mutex("stock").acquire();
  watched_token lost{held.lost()};
  cluster.remove_keys(prefix + "orders/");
  ASSERT_TRUE(lost.wait(15s));
  EXPECT_EQ(held.why_lost(), loss::deleted);
  EXPECT_TRUE(other.held());
}

TEST_F(Etcd, HeldKeyIsWatchedAlthoughItsHistoryIsCompacted) {
  auto c = make_client();
  const auto held = c.mutex("orders").acquire();
  for (int i = 0; i < 3; ++i)
    static_cast<void>(c.mutex("stock").acquire());
  const auto now = std::to_string(c.mutex("stock").acquire().token().value());
  ASSERT_NE(cluster.ctl({"compact", now}).find("compacted"), std::string::npos);
  const auto changes_what_is_watched = c.mutex("more").acquire();
  watched_token lost{held.lost()};
  let_pass(500ms);
  EXPECT_TRUE(held.held());
  cluster.remove_keys(prefix + "orders/");
  ASSERT_TRUE(lost.wait(15s));
  EXPECT_TRUE(changes_what_is_watched.held());
}

TEST_F(Etcd, WaiterOutwaitsItsOwnTtl) {
  auto a = make_client();
  client b{url(), {.lock = {.ttl = 2s}}};
  auto held = a.mutex("orders").acquire();
  auto got =
      std::async(std::launch::async, [&] { return b.mutex("orders").try_acquire(patience); });
  ASSERT_TRUE(eventually([&] { return keys_of("orders") == 2; }));
  const auto place = a.status("orders").waiters;
  let_pass(4500ms);
  EXPECT_EQ(keys_of("orders"), 2U);
  ASSERT_TRUE(held.release());
  EXPECT_TRUE(got.get());
}

TEST_F(Etcd, EtcdctlAndOursStandInOneQueue) {
  auto a = make_client();
  auto held = a.mutex("orders").acquire();
  child_process theirs{cluster.ctl_command({"lock", prefix + "orders"})};
  ASSERT_TRUE(eventually([&] { return keys_of("orders") == 2; }));
  waiter_of_orders ours{url()};
  ASSERT_TRUE(held.release());
  ASSERT_TRUE(theirs.wait_for_output(prefix + "orders/")) << "etcdctl prints its key: it has it";
  EXPECT_FALSE(ours.is_done());
  const auto holder = a.status("orders").holder.value();
  EXPECT_TRUE(holder.foreign);
  EXPECT_NE(theirs.stdout_text().find(holder.value), std::string::npos);
  EXPECT_FALSE(a.mutex("orders").try_acquire());
  theirs.signal(SIGINT);
  const auto next = ours.result();
  ASSERT_TRUE(next);
  EXPECT_GT(next->token(), holder.token);
}

TEST_F(Etcd, LockOfEtcdctlCanBeBrokenByItsToken) {
  auto c = make_client();
  child_process theirs{cluster.ctl_command({"lock", prefix + "orders"})};
  ASSERT_TRUE(theirs.wait_for_output(prefix + "orders/"));
  const auto holder = c.status("orders").holder.value();
  c.break_lock("orders", holder.token);
  EXPECT_TRUE(c.mutex("orders").try_acquire());
}

TEST_F(Etcd, LockWhoseNameGoesOnAfterASlashIsAnother) {
  auto a = make_client();
  auto b = make_client();
  const auto below = a.mutex("orders/7").acquire();
  auto above = b.mutex("orders").try_acquire();
  ASSERT_TRUE(above);
  EXPECT_FALSE(a.mutex("orders").try_acquire());
  waiter_of_orders waits{url()};
  EXPECT_EQ(a.status("orders").waiting, 1U);
  EXPECT_EQ(a.status("orders/7").holder.value().token, below.token());
  ASSERT_TRUE(above->release());
  EXPECT_TRUE(waits.result());
}

}  // namespace holdfast::test
