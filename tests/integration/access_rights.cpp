// The rule that `doctor --acl` prints: a user with it can do everything that locks need, and
// without any one element of it the server refuses something.
#include <algorithm>
#include <atomic>
#include <functional>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <holdfast/holdfast.hpp>

#include "stores/redis/layout.hpp"
#include "stores/redis/rights.hpp"
#include "support/redis_server.hpp"
#include "support/redlock_nodes.hpp"
#include "support/watch.hpp"

using namespace std::chrono_literals;

namespace holdfast::test {

namespace {

using stores::redis::locks_kept;
using stores::redis::user_scope;

// What is refused is found out soon; what is allowed is done in time on a busy machine.
constexpr auto wait = 10s;

constexpr auto soon_given_up = 100ms;

// What a program does with locks: it throws where something of it fails.
struct place {
  std::string url;
  // Whether the server has refused something: then there is nothing more to be waited for.
  std::function<bool()> refuses;
  // Of a release that is refused: it is not known by what.
  std::chrono::milliseconds release_budget = wait;

  [[nodiscard]] client connect(std::chrono::milliseconds ttl = 60s) const {
    return client{url, {.lock = {.ttl = ttl}, .release_budget = release_budget}};
  }
  template <class Done>
  void await(Done done) const {
    static_cast<void>(eventually([&] { return done() || refuses(); }, wait));
  }
};
struct operation {
  const char* name;
  std::function<void(const place& on)> run;
};

template <class T>
void must(const result<T>& done) {
  if (!done) throw std::runtime_error{done.error().message};
}

void lock_and_give_back(const place& on) {
  client c = on.connect();
  lease held = c.mutex("orders").acquire(wait);
  must(held.renew());
  must(held.release());
}

// By a client that was told, the time before, that others wait.
void hand_over(const place& on) {
  client a = on.connect();
  client b = on.connect();
  auto ours = a.mutex("orders");
  auto theirs = b.mutex("orders");
  for (int i = 0; i < 2; ++i) {
    std::optional<lease> held = ours.acquire(wait);
    std::optional<lease> got;
    std::atomic<bool> is_over{false};
    std::jthread waiter{[&](const std::stop_token& stop) {
      if (auto next = theirs.acquire_result(wait, stop)) got = std::move(*next);
      is_over = true;
    }};
    on.await([&] { return b.status("orders").waiting == 1; });
    held.reset();
    on.await([&] { return is_over.load(); });
    waiter.request_stop();
    waiter.join();
    must(got.value().release());
  }
}

void give_up_waiting(const place& on) {
  client a = on.connect();
  client b = on.connect();
  const lease held = a.mutex("orders").acquire(wait);
  if (b.mutex("orders").try_acquire(50ms)) throw std::logic_error{"two have it"};
}

void be_renewed(const place& on) {
  client c = on.connect(300ms);
  const lease held = c.mutex("orders").acquire(wait);
  while (held.why_lost() == loss::none && c.counters().renewals == 0)
    nap();
  if (held.why_lost() != loss::none) throw std::runtime_error{"not renewed"};
}

void look_and_break(const place& on) {
  client c = on.connect();
  const lease held = c.mutex("orders").acquire(wait);
  if (!c.status("orders").holder) throw std::logic_error{"nobody has it"};
  if (c.list("*").size() != 1) throw std::logic_error{"not listed"};
  c.break_lock("orders", held.token());
}

void recall(const place& on) {
  client c = on.connect();
  const lease held = c.mutex("orders").acquire(wait);
  c.recall_lock("orders", held.token());
}

void count_a_token(const place& on) {
  client c = on.connect();
  lease held = c.mutex("orders").acquire(wait);
  must(held.counted_token("fence"));
}

void share(const place& on) {
  client c = on.connect();
  auto permits = c.semaphore("encoders", 2);
  permits.resize(3);
  const lease one = permits.acquire(wait);
  c.break_lock("encoders", one.token());
  lease writes = c.shared_mutex("config").acquire(wait);
  must(c.shared_mutex("config").downgrade(writes));
}

class granted_user {
 public:
  explicit granted_user(const redis_server& on) : on_{on} {}

  // Instead of all that it had.
  void may(const std::vector<std::string>& rule) const {
    std::vector<std::string> words{"ACL", "SETUSER", "locks", "reset", "on", ">secret"};
    words.insert(words.end(), rule.begin(), rule.end());
    EXPECT_EQ(on_.command(words), "OK");
    EXPECT_EQ(on_.command({"ACL", "LOG", "RESET"}), "OK");
  }
  // What it was refused since, for a person; empty: nothing.
  [[nodiscard]] std::string refused() const { return on_.command({"ACL", "LOG"}); }

 private:
  const redis_server& on_;
};

std::vector<std::string> without(std::vector<std::string> rule, const std::string& element) {
  std::erase(rule, element);
  return rule;
}

}  // namespace

class AccessRule : public testing::Test {
 protected:
  [[nodiscard]] place place_of_locks(std::chrono::milliseconds release_budget = wait) const {
    return {url_, [this] { return !user_.refused().empty(); }, release_budget};
  }

  // A crowd has filled the queue, and the next one is turned away.
  void meet_a_full_queue(const place& on) const {
    client c = on.connect();
    const lease held = c.mutex("crowded").acquire(wait);
    const stores::redis::lock_keys keys{"app:crowded"};
    EXPECT_EQ(server_.command({"EVAL",
                               "redis.call('SELECT', 2) "
                               "for i = 1, 10000 do redis.call('RPUSH', KEYS[1], 'x') end "
                               "return redis.call('LLEN', KEYS[1])",
                               "1", keys.queue}),
              "10000");
    const auto refused = on.connect().mutex("crowded").acquire_result(wait);
    (void)server_.command({"FLUSHALL"});
    if (refused || refused.error().code != errc::overloaded) throw std::runtime_error{"let in"};
  }

  // Two latches: the listener goes on listening to one of them, and not to the other.
  void open_a_latch(const place& on) const {
    client c = on.connect();
    const auto listens = [&](std::size_t to) {
      const auto all = server_.command({"PUBSUB", "CHANNELS", "holdfast:{*"});
      return static_cast<std::size_t>(std::count(all.begin(), all.end(), '{')) == to;
    };
    std::jthread stays{[&](const std::stop_token& stop) {
      static_cast<void>(c.latch("never", 1).wait(wait, stop));
    }};
    std::jthread goes{[&] { static_cast<void>(c.latch("tested", 1).wait(wait)); }};
    on.await([&] { return listens(2); });
    c.latch("tested", 1).count_down();
    goes.join();
    on.await([&] { return listens(1); });
  }

  const std::vector<operation> operations_{
      {"lock_and_give_back", lock_and_give_back},
      {"hand_over", hand_over},
      {"give_up_waiting", give_up_waiting},
      {"look_and_break", look_and_break},
      {"recall", recall},
      {"count_a_token", count_a_token},
      {"share", share},
      {"be_renewed", be_renewed},
      {"meet_a_full_queue", [this](const auto& on) { meet_a_full_queue(on); }},
      {"open_a_latch", [this](const auto& on) { open_a_latch(on); }}};

  redis_server server_{{.tcp = true}};
  const granted_user user_{server_};
  const std::vector<std::string> rule_ =
      stores::redis::rule_elements({locks_kept::by_one_server, "app:", true});
  const std::string url_ =
      "redis://locks:secret@127.0.0.1:" + std::to_string(server_.port()) + "/2?prefix=app:";
};

TEST_F(AccessRule, IsEnoughForEverythingOnOneServer) {
  user_.may(rule_);
  for (const auto& one : operations_) {
    EXPECT_NO_THROW(one.run(place_of_locks())) << one.name;
    EXPECT_EQ(user_.refused(), "") << one.name;
  }
}

TEST_F(AccessRule, HasNothingThatCouldBeLeftOutOnOneServer) {
  for (const auto& element : rule_) {
    user_.may(without(rule_, element));
    for (const auto& one : operations_) {
      try {
        one.run(place_of_locks(soon_given_up));
      } catch (const std::exception&) {
        // What is refused may make it fail: the server's log says that it was refused.
      }
      if (!user_.refused().empty()) break;
    }
    EXPECT_NE(user_.refused(), "") << "nothing needs " << element;
    (void)server_.command({"FLUSHALL"});
    (void)server_.command({"SCRIPT", "FLUSH"});
  }
}

TEST_F(AccessRule, AllowsNothingBeside) {
  user_.may(rule_);
  raw_redis as_user{server_.where_tcp()};
  ASSERT_EQ(as_user.command({"AUTH", "locks", "secret"}).text, "OK");
  for (const auto& words : std::vector<std::vector<std::string>>{{"GET", "other"},
                                                                 {"FLUSHALL"},
                                                                 {"CONFIG", "GET", "*"},
                                                                 {"KEYS", "*"},
                                                                 {"ACL", "LIST"},
                                                                 {"PUBLISH", "other", "x"},
                                                                 {"CLIENT", "KILL", "ID", "1"}}) {
    EXPECT_THAT(as_user.command(words).text, testing::StartsWith("NOPERM")) << words[0];
  }
}

class AccessRuleOfNodes : public testing::Test {
 protected:
  AccessRuleOfNodes() {
    for (std::size_t i = 0; i < set_.size(); ++i)
      hosts_ += (i == 0 ? "" : ",") + set_.name(i);
  }
  [[nodiscard]] std::string url() const {
    return "redlock://locks:secret@" + hosts_ + "?node_timeout=1000&prefix=app:";
  }
  [[nodiscard]] place place_of_locks(std::chrono::milliseconds release_budget = wait) {
    return {url(), [this] { return !refused().empty(); }, release_budget};
  }
  void may(const std::vector<std::string>& rule) {
    for (std::size_t i = 0; i < set_.size(); ++i)
      granted_user{set_[i]}.may(rule);
  }
  [[nodiscard]] std::string refused() {
    std::string all;
    for (std::size_t i = 0; i < set_.size(); ++i)
      all += granted_user{set_[i]}.refused();
    return all;
  }
  // Of nodes that have forgotten everything.
  void let_them_vote() {
    for (std::size_t i = 0; i < set_.size(); ++i)
      (void)set_[i].command({"DEL", "holdfast:{redlock}:node"});
    must(redlock::init(url(), wait));
  }

  redlock_nodes set_{3};
  std::string hosts_;
  const std::vector<std::string> rule_ =
      stores::redis::rule_elements({locks_kept::on_a_quorum, "app:", false});
  const std::vector<operation> operations_{
      {"lock_and_give_back", lock_and_give_back},
      {"hand_over", hand_over},
      {"give_up_waiting", give_up_waiting},
      {"look_and_break", look_and_break},
      {"be_renewed", be_renewed},
      {"let_them_vote", [this](const auto&) { let_them_vote(); }}};
};

TEST_F(AccessRuleOfNodes, IsEnoughForEverythingOnAQuorum) {
  may(rule_);
  set_.begin(url());
  for (const auto& one : operations_) {
    EXPECT_NO_THROW(one.run(place_of_locks())) << one.name;
    EXPECT_EQ(refused(), "") << one.name;
  }
}

TEST_F(AccessRuleOfNodes, HasNothingThatCouldBeLeftOutOnAQuorum) {
  for (const auto& element : rule_) {
    may(rule_);
    set_.begin(url());
    may(without(rule_, element));
    for (const auto& one : operations_) {
      try {
        one.run(place_of_locks(soon_given_up));
      } catch (const std::exception&) {
        // As above.
      }
      if (!refused().empty()) break;
    }
    EXPECT_NE(refused(), "") << "nothing needs " << element;
    for (std::size_t i = 0; i < set_.size(); ++i) {
      (void)set_[i].command({"DEL", "app:orders", "holdfast:{redlock}:waiters:app:orders"});
      (void)set_[i].command({"SCRIPT", "FLUSH"});
    }
  }
}

}  // namespace holdfast::test
