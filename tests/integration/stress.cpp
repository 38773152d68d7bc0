// Eight processes of eight threads want a few locks. Whatever happens to them, the history that the
// locked files have kept shows no two holders at once, tokens in order, nobody forgotten in the
// queue; and at the end nothing is left in the server.
//
// HOLDFAST_SEED=n repeats a run, as far as schedulers can be made to repeat anything.
#include <cstdlib>
#include <random>
#include <set>

#include <gmock/gmock.h>

#include "stores/redis/layout.hpp"
#include "support/crowd.hpp"
#include "support/open_client.hpp"
#include "support/redis_server.hpp"

using namespace std::chrono_literals;

namespace holdfast::test {

namespace {

// While its lease said so, somebody relied on having the lock.
struct stay {
  core::time_point from{};
  core::time_point to{};
  std::uint64_t token = 0;
  unsigned process = 0;
};

std::vector<stay> stays_in(const std::vector<visit>& history) {
  std::map<std::uint64_t, stay> by_token;
  std::set<std::uint64_t> late;
  for (const auto& one : history) {
    if (one.what == visit::kind::gave_up) continue;
    const bool entered = one.what == visit::kind::entered;
    if (entered) {
      const bool new_token =
          by_token.try_emplace(one.token, stay{one.at, one.relied_until, one.token, one.process})
              .second;
      EXPECT_TRUE(new_token) << "token " << one.token << " was granted twice";
      // Its process was paused before it could enter, and the lease had ended: nobody relied on it.
      if (one.held == 0) late.insert(one.token);
      continue;
    }
    auto& its = by_token[one.token];
    EXPECT_EQ(its.process, one.process);
    // Still held when it left: held all the time. Otherwise for as long as it knew at the start.
    its.to = one.held != 0 ? one.at : std::min(its.to, one.at);
  }
  std::vector<stay> all;
  for (const auto& [token, one] : by_token) {
    if (!late.contains(token)) all.push_back(one);
  }
  return all;
}

void expect_one_at_a_time(std::vector<stay> all) {
  std::sort(all.begin(), all.end(), [](auto& a, auto& b) { return a.from < b.from; });
  int shown = 0;
  for (std::size_t i = 1; i < all.size() && shown < 10; ++i) {
    const auto& before = all[i - 1];
    const auto& after = all[i];
    const auto overlap = before.to - after.from;
    if (overlap <= 0ns && before.token < after.token) continue;
    ++shown;
    ADD_FAILURE() << "token " << before.token << " of process " << before.process << ", then "
                  << after.token << " of process " << after.process << ": together for "
                  << overlap.count() << " ns";
  }
}

void expect_gate_saw_tokens_increase(const std::vector<visit>& history) {
  std::uint64_t last = 0;
  for (const auto& one : history) {
    if (one.what != visit::kind::entered || one.accepted == 0) continue;
    EXPECT_GT(one.token, last);
    last = one.token;
  }
}

class Stress : public testing::Test {
 protected:
  Stress() : Stress{redis_server_options{}} {}
  explicit Stress(redis_server_options how) : server{std::move(how)} {
    const char* given = std::getenv("HOLDFAST_SEED");
    seed = given != nullptr ? static_cast<unsigned>(std::strtoul(given, nullptr, 10))
                            : std::random_device{}();
    std::printf("HOLDFAST_SEED=%u\n", seed);
  }

  // How long somebody may wait while nobody has the lock, in such a stretch of time.
  using patience_rule = std::function<core::duration(core::time_point from, core::time_point to)>;

  static void expect_nobody_forgotten(const std::vector<visit>& history, std::vector<stay> all,
                                      const patience_rule& allowed) {
    std::sort(all.begin(), all.end(), [](auto& a, auto& b) { return a.from < b.from; });
    core::time_point free_from = all.empty() ? core::never : all.front().from;
    for (const auto& next : all) {
      const auto most = allowed(free_from, next.from);
      for (const auto& one : history) {
        if (one.what == visit::kind::left || next.from - free_from <= most) continue;
        const auto waited = std::min(one.at, next.from) - std::max(one.asked_at, free_from);
        EXPECT_LE(waited, most) << "process " << one.process
                                << " waited for a lock that nobody had, for " << waited / 1ms
                                << " ms";
        if (waited > most) return;
      }
      free_from = std::max(free_from, next.to);
    }
  }

  void check(const crowd& all, const patience_rule& allowed) {
    std::size_t acquisitions = 0;
    for (unsigned lock = 0; lock < all.how().locks; ++lock) {
      SCOPED_TRACE(crowd::lock_name(lock));
      const auto history = all.history(lock);
      const auto stays = stays_in(history);
      acquisitions += stays.size();
      expect_gate_saw_tokens_increase(history);
      expect_one_at_a_time(stays);
      expect_nobody_forgotten(history, stays, allowed);
    }
    std::printf("%zu acquisitions\n", acquisitions);
    EXPECT_GT(acquisitions, 100U);
  }

  // Somebody new gets every lock; those who died in a queue are passed over, and nothing is left.
  void expect_nothing_left(const crowd& all) {
    client last{all.how().url};
    for (unsigned lock = 0; lock < all.how().locks; ++lock) {
      auto got = last.mutex(crowd::lock_name(lock)).try_acquire(patience);
      ASSERT_TRUE(got);
      EXPECT_TRUE(got->release());
    }
    std::istringstream keys{server.command({"KEYS", "*"})};
    for (std::string key; std::getline(keys, key);)
      EXPECT_THAT(key, testing::EndsWith(":slot")) << server.command({"TYPE", key});
  }

  void kill_and_pause(const std::string& url, core::duration how_long) {
    constexpr std::chrono::milliseconds ttl = 1s;
    constexpr std::chrono::milliseconds claim = 1s;  // with that TTL
    crowd all{{.ttl = ttl, .url = url}, seed};
    const auto end = runtime::now() + how_long;
    while (runtime::now() < end) {
      let_pass(std::chrono::milliseconds{100 + all.below(200)});
      if (all.below(3) == 0) {
        all.kill_one();
      } else {
        all.pause_one(std::chrono::milliseconds{200 + all.below(1400)});
      }
    }
    all.end();
    // A dead or paused holder costs a TTL, a paused waiter that was granted the lock a claim TTL;
    // either is noticed when the next one asks, a quarter of its claim TTL later at most.
    const auto noticed = claim / 4 + 2s;  // and a busy machine
    check(all, [&](auto from, auto to) -> core::duration {
      return all.faults_between(from - ttl, to) * (ttl + claim) + noticed;
    });
    expect_nothing_left(all);
  }

  unsigned seed = 0;
  redis_server server;
};

class StressOverTls : private authority, public Stress {
 protected:
  StressOverTls()
      : authority{"our authority"},
        Stress{{.tcp = true, .tls = server_tls{.shows = issue("server"), .authority = file()}}} {}
};

}  // namespace

// The TTL is so long that a waiter asks by itself only after some seconds: it is told, every time.
TEST_F(Stress, NobodyIsForgottenWhileAllAreWell) {
  crowd all{{.ttl = 60s, .url = server.url()}, seed};
  let_pass(4s);
  all.end();
  check(all, [](auto, auto) { return core::duration{2s}; });
  expect_nothing_left(all);
}

TEST_F(Stress, OneHolderAtATimeThroughKillsAndPauses) { kill_and_pause(server.url(), 7s); }

TEST_F(StressOverTls, OneHolderAtATimeThroughKillsAndPauses) {
  kill_and_pause(server.tcp_url(), 4s);
}

}  // namespace holdfast::test
