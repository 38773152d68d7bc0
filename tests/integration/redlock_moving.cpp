// From one list of nodes to another, while locks are held.
#include <algorithm>
#include <memory>

#include <gtest/gtest.h>

#include <holdfast/holdfast.hpp>

#include "runtime/clock.hpp"
#include "support/fault_proxy.hpp"
#include "support/naive_redlock.hpp"
#include "support/open_client.hpp"
#include "support/redlock_nodes.hpp"
#include "support/watch.hpp"

using namespace std::chrono_literals;

namespace holdfast::test {

namespace {

constexpr auto long_time = 20s;  // a slow machine may take its time

// Some of these servers, as a URL.
class RedlockMoving : public testing::Test {
 protected:
  [[nodiscard]] std::string list(const std::vector<std::size_t>& which, unsigned epoch,
                                 const std::string& max_ttl = "60000") const {
    std::string text = "redlock://";
    for (const auto i : which)
      text += (i == which.front() ? "" : ",") + servers.name(i);
    return text + "?node_timeout=1000&max_ttl=" + max_ttl + "&epoch=" + std::to_string(epoch);
  }
  [[nodiscard]] std::vector<endpoint> where(const std::vector<std::size_t>& which) const {
    std::vector<endpoint> some;
    for (const auto i : which)
      some.push_back(servers.where()[i]);
    return some;
  }
  void begin(const std::string& url) { servers.begin(url); }
  [[nodiscard]] static bool votes(const std::string& url, std::size_t node) {
    const auto seen = redlock::status(url);
    return seen && seen->at(node).votes;
  }
  // As if nobody but these had granted it.
  void leave_on(const std::vector<std::size_t>& which, const std::string& key) {
    for (std::size_t i = 0; i < servers.size(); ++i) {
      if (std::find(which.begin(), which.end(), i) == which.end()) {
        (void)servers[i].command({"DEL", key});
      }
    }
  }
  static client_options long_lease() {
    return {.lock = {.ttl = 60'000ms}, .unreachable_limit = 1ms};
  }

  using proxies_of_nodes = std::vector<std::unique_ptr<fault_proxy>>;
  [[nodiscard]] proxies_of_nodes in_front_of_four() {
    proxies_of_nodes all;
    for (std::size_t i = 0; i < 4; ++i) {
      all.push_back(std::make_unique<fault_proxy>(servers[i].where(), fault_proxy::listen_on::tcp));
    }
    return all;
  }
  // The first two of them, and another one.
  [[nodiscard]] static std::string list_of(const proxies_of_nodes& all, std::size_t third,
                                           const std::string& query) {
    std::string text = "redlock://";
    for (const std::size_t i : {std::size_t{0}, std::size_t{1}, third})
      text += (i == 0 ? "" : ",") + all[i]->url().substr(std::string_view{"redis://"}.size());
    return text + "?" + query;
  }

  redlock_nodes servers{6, {.init = false}};
};

}  // namespace

TEST_F(RedlockMoving, NaiveClientsOfTwoListsBothHold) {
  naive_redlock before{where({0, 1, 2}), "orders"};
  naive_redlock after{where({0, 1, 3}), "orders"};
  ASSERT_TRUE(before.lock(60s));
  leave_on({0, 2}, "orders");  // granted by two, one of which is replaced
  EXPECT_TRUE(after.lock(60s)) << "by the other, and by the new one";
}

// The same by our own means, without the move: records deleted, the new list begun at once.
TEST_F(RedlockMoving, NewListBegunAtOnceGivesTwoHolders) {
  begin(list({0, 1, 2}, 1));
  client a{list({0, 1, 2}, 1), long_lease()};
  const lease held = a.mutex("orders").acquire();
  for (const std::size_t i : {0U, 1U, 2U})
    ASSERT_TRUE(eventually([&] { return servers[i].command({"EXISTS", "orders"}) == "1"; }));
  leave_on({0, 2}, "orders");
  for (const std::size_t i : {0U, 1U})
    (void)servers[i].command({"DEL", "holdfast:{redlock}:node"});
  begin(list({0, 1, 3}, 2));
  client b{list({0, 1, 3}, 2), long_lease()};
  EXPECT_TRUE(b.mutex("orders").try_acquire());
  EXPECT_TRUE(held.held());
}

TEST_F(RedlockMoving, WhatWasHeldIsHeldAgainstTheNewList) {
  const auto from = list({0, 1, 2}, 1);
  const auto to = list({0, 1, 3}, 2);
  begin(from);
  client a{from, long_lease()};
  lease held = a.mutex("orders").acquire();
  for (const std::size_t i : {0U, 1U, 2U})
    ASSERT_TRUE(eventually([&] { return servers[i].command({"EXISTS", "orders"}) == "1"; }));
  leave_on({0, 2}, "orders");
  const auto ok = redlock::move(from, to, long_time);
  ASSERT_TRUE(ok) << ok.error().message;

  client b{to, long_lease()};
  for (int i = 0; i < 3; ++i) {
    (void)thrown_by([&] { EXPECT_FALSE(b.mutex("orders").try_acquire(50ms)) << "two holders"; });
  }
  EXPECT_FALSE(votes(to, 2)) << "the new node has not granted what was granted before";
  EXPECT_TRUE(held.held());
  // What is free is to be had at once, by the nodes that stayed.
  EXPECT_TRUE(b.mutex("stock").try_acquire(patience));
  // The old client can give back what it has.
  EXPECT_TRUE(eventually([&] { return !held.held() || held.release(); }));
  EXPECT_TRUE(eventually([&] { return servers.holding("orders") == 0; }));
  EXPECT_TRUE(b.mutex("orders").try_acquire(patience));
}

TEST_F(RedlockMoving, OldClientsAreRefusedAndToldTheNewList) {
  const auto from = list({0, 1, 2}, 1);
  const auto to = list({0, 1, 3}, 2);
  begin(from);
  client a{from, long_lease()};
  { const lease warm = a.mutex("orders").acquire(); }
  const auto ok = redlock::move(from, to, long_time);
  ASSERT_TRUE(ok) << ok.error().message;
  std::string what;
  EXPECT_EQ(thrown_by([&] { static_cast<void>(a.mutex("orders").try_acquire()); }, &what),
            errc::incompatible);
  EXPECT_NE(what.find(servers.name(3)), std::string::npos) << what;
  EXPECT_NE(what.find("epoch 2"), std::string::npos) << what;
  // The one that left refuses, too.
  const auto seen = redlock::status(from);
  ASSERT_TRUE(seen);
  EXPECT_NE((*seen)[2].description.find("epoch 2"), std::string::npos) << (*seen)[2].description;
}

// Decided so: a lease of the old list ends with its TTL, and its holder hears of it in time.
TEST_F(RedlockMoving, OldHoldersHearOfTheirLossBeforeTheNodesLetGo) {
  const auto from = list({0, 1, 2}, 1);
  const auto to = list({0, 1, 3}, 2);
  begin(from);
  client a{from, {.lock = {.ttl = 3'000ms}}};
  lease held = a.mutex("orders").acquire();
  watched_token lost{held.lost()};
  ASSERT_TRUE(eventually([&] { return servers.holding("orders") == 3; }));
  const auto ok = redlock::move(from, to, long_time);
  ASSERT_TRUE(ok) << ok.error().message;
  ASSERT_TRUE(lost.wait());
  EXPECT_EQ(held.why_lost(), loss::expired);
  client b{to, long_lease()};
  const auto next = b.mutex("orders").try_acquire(patience);
  ASSERT_TRUE(next);
  EXPECT_GT(next->token(), held.token());
}

TEST_F(RedlockMoving, DetachedLeaseIsAdoptedWithTheNewList) {
  const auto from = list({0, 1, 2}, 1);
  const auto to = list({0, 1, 3}, 2);
  begin(from);
  client a{from, long_lease()};
  lease held = a.mutex("orders").acquire();
  ASSERT_TRUE(eventually([&] { return servers.holding("orders") == 3; }));
  const auto ticket = held.detach();
  const auto ok = redlock::move(from, to, long_time);
  ASSERT_TRUE(ok) << ok.error().message;
  client b{to, long_lease()};
  lease adopted = b.mutex("orders").adopt(ticket);
  EXPECT_TRUE(adopted.renew());
  EXPECT_EQ(adopted.token(), held.token());
  EXPECT_TRUE(adopted.release());
}

TEST_F(RedlockMoving, NewNodeVotesAfterMaxTtlWithTheCountersOfTheOthers) {
  const auto from = list({0, 1, 2}, 1, "2000");
  const auto to = list({0, 1, 3}, 2, "2000");
  begin(from);
  client early{to, {.lock = {.ttl = 1'000ms}, .unreachable_limit = 1ms}};
  // It has been seen empty for as long as it would have to wait, before the move.
  (void)thrown_by([&] { static_cast<void>(early.mutex("orders").try_acquire()); });
  client a{from, {.lock = {.ttl = 1'000ms}, .unreachable_limit = 1ms}};
  const auto last = a.mutex("orders").acquire().token();
  let_pass(2'100ms);
  const auto moved_at = runtime::now();
  const auto ok = redlock::move(from, to, long_time);
  ASSERT_TRUE(ok) << ok.error().message;
  client b{to, {.lock = {.ttl = 1'000ms}}};
  ASSERT_TRUE(eventually([&] {
    { const lease used = b.mutex("orders").acquire(); }
    return votes(to, 2);
  }));
  EXPECT_GE(runtime::now() - moved_at, 2'000ms) << "locks of the old list may have lasted so long";
  servers[0].kill9();
  const auto next = b.mutex("orders").try_acquire(patience);
  ASSERT_TRUE(next) << "by the new one and one that stayed";
  EXPECT_GT(next->token(), last);
}

TEST_F(RedlockMoving, BrokenNodeIsReplaced) {
  const auto from = list({0, 1, 2, 3, 4}, 1);
  const auto to = list({0, 1, 2, 3, 5}, 2);
  begin(from);
  client a{from, long_lease()};
  const auto last = a.mutex("orders").acquire().token();
  servers[4].kill9();
  const auto ok = redlock::move(from, to, long_time);
  ASSERT_TRUE(ok) << ok.error().message;
  client b{to, long_lease()};
  const auto next = b.mutex("orders").try_acquire(patience);
  ASSERT_TRUE(next);
  EXPECT_GT(next->token(), last);
}

TEST_F(RedlockMoving, NodesAreAddedAndRemoved) {
  std::string from = list({0, 1, 2}, 1, "1000");
  begin(from);
  fencing_token last{0};
  for (const auto& to :
       {list({0, 1, 2, 3}, 2, "1000"), list({0, 1, 2}, 3, "1000"), list({1, 2}, 4, "1000")}) {
    result<void> moved;
    EXPECT_TRUE(eventually([&] {
      moved = redlock::move(from, to, long_time);
      return moved || moved.error().code != errc::store_loading;  // not before max_ttl is over
    }));
    ASSERT_TRUE(moved) << moved.error().message;
    client c{to, {.lock = {.ttl = 1'000ms}, .unreachable_limit = 1ms}};
    const auto held = c.mutex("orders").try_acquire(patience);
    ASSERT_TRUE(held);
    EXPECT_GT(held->token(), last);
    last = held->token();
    from = to;
  }
}

// Each of the two would be safe. Both at once would be from five to three: the two that granted it
// beside node 2 are gone, and 0 and 1 would be a majority.
TEST_F(RedlockMoving, TwoMovesAtOnceAreRefused) {
  const auto from = list({0, 1, 2, 3, 4}, 1);
  begin(from);
  client a{from, long_lease()};
  const lease held = a.mutex("orders").acquire();
  ASSERT_TRUE(eventually([&] { return servers.holding("orders") == 5; }));
  leave_on({2, 3, 4}, "orders");
  const auto first = redlock::move(from, list({0, 1, 2, 3}, 2), long_time);
  ASSERT_TRUE(first) << first.error().message;
  const auto second = redlock::move(list({0, 1, 2, 3}, 2), list({0, 1, 2}, 3), long_time);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, errc::store_loading) << second.error().message;
  client b{list({0, 1, 2, 3}, 2), long_lease()};
  EXPECT_FALSE(b.mutex("orders").try_acquire());
  EXPECT_TRUE(held.held());
}

// Stopped after one node of three: the old list still works, the new one does not, and neither
// gives away what the other has given.
TEST_F(RedlockMoving, StoppedHalfwayIsFinishedByDoingItAgain) {
  const auto proxies = in_front_of_four();
  const auto from = list_of(proxies, 2, "node_timeout=1000&epoch=1");
  const auto to = list_of(proxies, 3, "node_timeout=1000&epoch=2");
  begin(from);
  client a{from, long_lease()};
  client b{to, long_lease()};
  for (const auto* request : {"\r\nstay\r\n", "\r\nleave\r\n", "\r\njoin\r\n"}) {
    for (std::size_t i = 1; i < 4; ++i)
      proxies[i]->inject(fault::cut_before_send, request);
  }
  ASSERT_FALSE(redlock::move(from, to, 5s));
  EXPECT_TRUE(votes(to, 0));
  {
    const auto held = a.mutex("orders").try_acquire(patience);
    EXPECT_TRUE(held) << "two of three still serve the old list";
    EXPECT_NE(thrown_by([&] { static_cast<void>(b.mutex("orders").try_acquire()); }), errc{});
  }
  for (int i = 0; i < 2; ++i) {
    for (const auto& one : proxies)
      one->clear();
    const auto ok = redlock::move(from, to, long_time);
    ASSERT_TRUE(ok) << ok.error().message;
  }
  EXPECT_TRUE(eventually([&] { return servers.holding("orders") == 0; }));
  EXPECT_TRUE(b.mutex("orders").try_acquire(patience));
  EXPECT_EQ(thrown_by([&] { static_cast<void>(a.mutex("orders").try_acquire()); }),
            errc::incompatible);
}

TEST_F(RedlockMoving, NodeThatWasAwayIsTakenAlongLater) {
  const auto from = list({0, 1, 2, 3, 4}, 1);
  const auto to = list({0, 1, 2, 3, 5}, 2);
  begin(from);
  servers[1].pause();
  const auto first = redlock::move(from, to, 5s);
  ASSERT_FALSE(first);
  EXPECT_EQ(first.error().code, errc::store_unreachable);
  EXPECT_NE(first.error().message.find("again"), std::string::npos) << first.error().message;
  client b{to, long_lease()};
  EXPECT_TRUE(b.mutex("orders").try_acquire(patience)) << "three of those that stay suffice";
  servers[1].resume();
  const auto second = redlock::move(from, to, long_time);
  ASSERT_TRUE(second) << second.error().message;
  EXPECT_TRUE(votes(to, 1)) << "it has lost nothing, so it votes at once";
}

TEST_F(RedlockMoving, WhatIsNotSafeChangesNothing) {
  const auto from = list({0, 1, 2}, 1);
  begin(from);
  client a{from, long_lease()};
  const auto refused = [&](const std::string& to, errc code) {
    const auto said = redlock::move(from, to, 5s);
    ASSERT_FALSE(said) << to;
    EXPECT_EQ(said.error().code, code) << said.error().message;
    EXPECT_TRUE(a.mutex("orders").try_acquire(patience)) << "the old list works as before";
  };
  refused(list({0, 1, 3}, 1), errc::invalid_argument);                // the same epoch
  refused(list({0, 1, 3}, 2, "61000"), errc::invalid_argument);       // another max_ttl
  refused(list({0, 1, 3}, 2) + "&prefix=x", errc::invalid_argument);  // other locks
  refused(list({0}, 2), errc::store_refused);                         // two of three would leave
  refused(list({0, 3, 4}, 2), errc::store_unreachable);               // one of three would stay
  begin(list({4, 5}, 7));
  refused(list({0, 1, 4}, 2), errc::incompatible);  // it votes for others
  EXPECT_EQ(servers[3].command({"DBSIZE"}), "0") << "a new node of a move that was refused";
  servers[3].kill9();
  refused(list({0, 1, 3}, 2), errc::store_unreachable);  // the new one is not there
}

TEST_F(RedlockMoving, CredentialsOfTheOldListDoForTheNew) {
  redlock_nodes secret{4, {.node = {.password = "sesame"}, .init = false}};
  const auto with = [&](const std::string& who, std::size_t last, const std::string& epoch) {
    return "redlock://" + who + secret.name(0) + "," + secret.name(1) + "," + secret.name(last) +
           "?node_timeout=1000&epoch=" + epoch;
  };
  begin(with(":sesame@", 2, "1"));
  const auto ok = redlock::move(with(":sesame@", 2, "1"), with("", 3, "2"), long_time);
  ASSERT_TRUE(ok) << ok.error().message;
  client c{with(":sesame@", 3, "2"), long_lease()};
  EXPECT_TRUE(c.mutex("orders").try_acquire(patience));
}

TEST_F(RedlockMoving, NodeThatHasToWaitChangesOverAndVotesLater) {
  const auto from = list({0, 1, 2}, 1, "1000");
  const auto to = list({0, 1, 3}, 2, "1000");
  begin(from);
  client a{from, {.lock = {.ttl = 1'000ms}}};
  const auto last = a.mutex("orders").acquire().token();
  servers[1].kill9();
  servers[1].restart();
  const auto moved = redlock::move(from, to, long_time);
  ASSERT_TRUE(moved) << moved.error().message;
  EXPECT_FALSE(votes(to, 1));
  client b{to, {.lock = {.ttl = 1'000ms}, .unreachable_limit = 1ms}};
  const auto next = b.mutex("orders").try_acquire(patience);
  ASSERT_TRUE(next);
  EXPECT_GT(next->token(), last);
  EXPECT_TRUE(eventually([&] { return votes(to, 1) && votes(to, 2); }));
}

// One node of the old list changed over, and nobody finished the move. With the newcomer it would
// be a majority of the new list, and the other two are one of the old.
TEST_F(RedlockMoving, HalfDoneMoveLetsNoNewcomerIn) {
  const auto proxies = in_front_of_four();
  const auto from = list_of(proxies, 2, "node_timeout=1000&max_ttl=1000&epoch=1");
  const auto to = list_of(proxies, 3, "node_timeout=1000&max_ttl=1000&epoch=2");
  begin(from);
  for (const auto* request : {"\r\nstay\r\n", "\r\nleave\r\n"}) {
    for (const std::size_t i : {1U, 2U})
      proxies[i]->inject(fault::cut_before_send, request);
  }
  ASSERT_FALSE(redlock::move(from, to, 5s));
  ASSERT_TRUE(votes(to, 0));
  client a{from, {.lock = {.ttl = 1'000ms}}};
  client b{to, {.lock = {.ttl = 1'000ms}, .unreachable_limit = 1ms}};
  const auto held = a.mutex("orders").try_acquire(patience);
  ASSERT_TRUE(held);
  (void)servers[0].command({"DEL", "orders"});
  const auto until = runtime::now() + 4s;  // the wait, two looks, and as much again
  while (runtime::now() < until) {
    (void)thrown_by([&] { EXPECT_FALSE(b.mutex("orders").try_acquire(500ms)) << "two holders"; });
    ASSERT_FALSE(votes(to, 2));
  }
  EXPECT_TRUE(held->held());
  for (const auto& one : proxies)
    one->clear();
  const auto finished = redlock::move(from, to, long_time);
  ASSERT_TRUE(finished) << finished.error().message;
  EXPECT_TRUE(b.mutex("orders").try_acquire(patience));
  EXPECT_TRUE(eventually([&] { return votes(to, 2); })) << "the newcomer, a wait later";
}

}  // namespace holdfast::test
