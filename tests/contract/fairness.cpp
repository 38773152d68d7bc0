// Waiting: who is next, how soon, and what a cohort of threads owes the others.
#include <atomic>
#include <functional>
#include <thread>

#include "support/contract.hpp"

using namespace std::chrono_literals;

namespace holdfast::test {

namespace {

// Somebody who waits for a lock, in a thread of its own.
class waiting_client {
 public:
  using opener = std::function<client(client_options)>;
  explicit waiting_client(const opener& open) : client_{open({.observer = seen_})} {}
  ~waiting_client() {
    stop_.request_stop();
    join();
  }
  waiting_client(const waiting_client&) = delete;
  waiting_client& operator=(const waiting_client&) = delete;

  // Returns once it has a place in the queue.
  void begin(std::chrono::nanoseconds wait = forever) {
    const auto before = seen_->count(event::kind::waiting);
    thread_ = std::thread{[this, wait] {
      got_ = client_.mutex("orders").try_acquire(wait, stop_.get_token());
      done_ = true;
    }};
    EXPECT_TRUE(seen_->await(event::kind::waiting, before + 1));
  }
  void cancel() { stop_.request_stop(); }
  void join() {
    if (thread_.joinable()) thread_.join();
  }
  [[nodiscard]] bool still_waits() const { return !done_; }
  // Waits for the end of its wait.
  [[nodiscard]] std::optional<lease> result() {
    join();
    return std::move(got_);
  }

 private:
  const std::shared_ptr<recorder> seen_ = std::make_shared<recorder>();
  client client_;
  std::stop_source stop_;
  std::optional<lease> got_;
  std::atomic<bool> done_{false};
  std::thread thread_;
};

}  // namespace

CONTRACT(FirstComeFirstServedAcrossClients) {
  const auto open = [this](client_options with) {
    with.lock.ttl = long_ttl;
    return make_client(std::move(with));
  };
  client first = make_client(lock_options{.ttl = long_ttl});
  if (!first.guarantees().fifo) GTEST_SKIP() << "the store promises no order";
  lease held = first.mutex("orders").acquire();
  std::vector<std::unique_ptr<waiting_client>> line;
  for (int i = 0; i < 4; ++i) {
    line.push_back(std::make_unique<waiting_client>(open));
    line.back()->begin();
  }
  auto token = held.token();
  ASSERT_TRUE(held.release());
  for (std::size_t i = 0; i < line.size(); ++i) {
    auto got = line[i]->result();
    ASSERT_TRUE(got);
    EXPECT_GT(got->token(), token);
    token = got->token();
    for (std::size_t later = i + 1; later < line.size(); ++later)
      EXPECT_TRUE(line[later]->still_waits());
    ASSERT_TRUE(got->release());
  }
}

CONTRACT(WaitersWhoGaveUpCostTheNextNothing) {
  const auto open = [this](client_options with) {
    with.lock.ttl = long_ttl;
    return make_client(std::move(with));
  };
  client first = make_client(lock_options{.ttl = long_ttl});
  lease held = first.mutex("orders").acquire();
  waiting_client times_out{open};
  waiting_client cancelled{open};
  waiting_client stays{open};
  times_out.begin(100ms);
  cancelled.begin();
  stays.begin();
  EXPECT_FALSE(times_out.result());
  cancelled.cancel();
  EXPECT_FALSE(cancelled.result());
  ASSERT_TRUE(held.release());
  EXPECT_TRUE(stays.result());
}

// A store that polled, or that told nobody, would take a second or more every time.
CONTRACT(ReleaseHandsTheLockOverPromptly) {
  const auto seen = std::make_shared<recorder>();
  client a = make_client(lock_options{.ttl = long_ttl});
  client b = make_client(client_options{.lock = {.ttl = long_ttl}, .observer = seen});
  std::chrono::nanoseconds quickest = patience;
  for (std::size_t i = 1; i <= 5; ++i) {
    lease held = a.mutex("orders").acquire();
    core::time_point got_at{};
    std::thread thread{[&] {
      const lease got = b.mutex("orders").acquire();
      got_at = runtime::now();
    }};
    EXPECT_TRUE(seen->await(event::kind::waiting, i));
    const auto released = runtime::now();
    EXPECT_TRUE(held.release());
    thread.join();
    quickest = std::min<std::chrono::nanoseconds>(quickest, got_at - released);
  }
  EXPECT_LT(quickest, 500ms);
}

CONTRACT(ThreadsOfOneClientGetFreshTokensInOrder) {
  constexpr int threads = 4;
  constexpr int rounds = 50;
  client c = make_client(lock_options{.ttl = long_ttl});
  fence::gate gate;
  std::atomic<int> wrong{0};
  std::vector<std::thread> all;
  for (int t = 0; t < threads; ++t) {
    all.emplace_back([&] {
      for (int i = 0; i < rounds; ++i) {
        const lease held = c.mutex("orders").acquire();
        const auto before = gate.highest();
        if (held.token() <= before || !gate.accept(held.token())) ++wrong;
      }
    });
  }
  for (auto& t : all)
    t.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(c.counters().acquisitions, std::uint64_t{threads * rounds});
}

// While it waits, the lock goes from hand to hand over there, but not for long.
CONTRACT(WaitingClientIsServedWithinTheBoundsOfACohort) {
  constexpr int threads = 4;
  constexpr std::uint64_t most_hands = 64;  // as docs/guarantees.md has it
  const auto seen = std::make_shared<recorder>();
  client crowd = make_client(lock_options{.ttl = long_ttl});
  client other = make_client(client_options{.lock = {.ttl = long_ttl}, .observer = seen});
  std::atomic<bool> over{false};
  std::atomic<std::uint64_t> hands{0};
  std::vector<std::thread> all;
  for (int t = 0; t < threads; ++t) {
    all.emplace_back([&] {
      while (!over) {
        const lease held = crowd.mutex("orders").acquire();
        ++hands;
      }
    });
  }
  std::size_t waited = 0;
  for (int i = 0; i < 30; ++i) {
    std::uint64_t when_queued = 0;
    std::uint64_t when_served = 0;
    std::atomic<bool> served{false};
    std::thread thread{[&] {
      const lease held = other.mutex("orders").acquire();
      when_served = hands;
      served = true;
    }};
    // From when it has its place; it may be so lucky as not to wait at all.
    EXPECT_TRUE(eventually([&] { return served || seen->count(event::kind::waiting) > waited; }));
    when_queued = hands;
    thread.join();
    waited = seen->count(event::kind::waiting);
    if (when_served < when_queued) continue;
    // What is left of this turn, and the hand that had it when the other was served. A quorum has
    // no queue: there, being served at all is what is promised.
    if (other.guarantees().fifo) {
      EXPECT_LE(when_served - when_queued, most_hands + 1);
    }
  }
  over = true;
  for (auto& t : all)
    t.join();
}

}  // namespace holdfast::test
