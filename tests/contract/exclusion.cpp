// Who gets the lock, who does not, and what a wait leaves behind.
#include <algorithm>
#include <atomic>
#include <set>
#include <thread>

#include "support/contract.hpp"

using namespace std::chrono_literals;

namespace holdfast::test {

using untrusted::escape;

CONTRACT(OneClientExcludesAnother) {
  client a = make_client();
  client b = make_client();
  auto held = a.mutex("orders").try_acquire();
  ASSERT_TRUE(held);
  EXPECT_FALSE(b.mutex("orders").try_acquire());
  ASSERT_TRUE(held->release());
  EXPECT_TRUE(b.mutex("orders").try_acquire());
}

CONTRACT(OtherNamesAreOtherLocks) {
  client a = make_client();
  client b = make_client();
  const auto one = a.mutex("orders/1").try_acquire();
  ASSERT_TRUE(one);
  EXPECT_TRUE(b.mutex("orders/2").try_acquire());
}

CONTRACT(SecondLeaseOfOneClientWaitsForTheFirst) {
  client c = make_client();
  const auto first = c.mutex("orders").try_acquire();
  ASSERT_TRUE(first);
  EXPECT_FALSE(c.mutex("orders").try_acquire());
}

// Two writers that race would lose updates of a plain variable, and TSan would say so.
CONTRACT(ThreadsAndClientsNeverHoldTogether) {
  constexpr int clients = 2;
  constexpr int threads_each = 3;
  constexpr int rounds = 15;
  std::atomic<int> inside{0};
  std::atomic<int> most{0};
  std::vector<std::uint64_t> tokens;  // guarded by the lock under test
  std::vector<std::thread> threads;
  for (int i = 0; i < clients; ++i) {
    auto shared = std::make_shared<client>(make_client(lock_options{.ttl = long_ttl}));
    for (int j = 0; j < threads_each; ++j) {
      threads.emplace_back([&, shared] {
        mutex m = shared->mutex("counter");
        for (int k = 0; k < rounds; ++k) {
          lease held = m.acquire();
          most = std::max(most.load(), ++inside);
          tokens.push_back(held.token().value());
          --inside;
          EXPECT_TRUE(held.release());
        }
      });
    }
  }
  for (std::thread& t : threads)
    t.join();
  EXPECT_EQ(most, 1);
  ASSERT_EQ(tokens.size(), std::size_t{clients * threads_each * rounds});
  EXPECT_TRUE(std::is_sorted(tokens.begin(), tokens.end()));
  EXPECT_EQ(std::set<std::uint64_t>(tokens.begin(), tokens.end()).size(), tokens.size());
}

CONTRACT(TokensIncreaseFromGrantToGrant) {
  client a = make_client();
  client b = make_client();
  fencing_token last{0};
  for (int i = 0; i < 20; ++i) {
    lease held = (i % 2 == 0 ? a : b).mutex("orders").acquire();
    EXPECT_GT(held.token(), last);
    EXPECT_LT(held.token().value(), std::uint64_t{1} << 53U);
    last = held.token();
    ASSERT_TRUE(held.release());
  }
}

CONTRACT(WaiterGetsTheLockWhenItIsReleased) {
  client a = make_client(lock_options{.ttl = long_ttl});
  const auto seen = std::make_shared<recorder>();
  client b = make_client(client_options{.lock = {.ttl = long_ttl}, .observer = seen});
  lease held = a.mutex("orders").acquire();
  std::optional<lease> got;
  std::thread waiter{[&] { got = b.mutex("orders").try_acquire(patience); }};
  EXPECT_TRUE(seen->await(event::kind::waiting));
  EXPECT_TRUE(held.release());
  waiter.join();
  ASSERT_TRUE(got);
  EXPECT_GT(got->token(), held.token());
}

CONTRACT(WaitEndsEmptyAtItsTimeout) {
  client a = make_client(lock_options{.ttl = long_ttl});
  client b = make_client(lock_options{.ttl = long_ttl});
  const lease held = a.mutex("orders").acquire();
  const auto started = runtime::now();
  EXPECT_FALSE(b.mutex("orders").try_acquire(300ms));
  const auto took = runtime::now() - started;
  EXPECT_GE(took, 300ms);
  EXPECT_LT(took, 20s);
  EXPECT_EQ(b.counters().waiting_now, 0U);
  EXPECT_EQ(b.counters().waits, 1U);
}

CONTRACT(AcquireThrowsAtTheWaitLimit) {
  client a = make_client(lock_options{.ttl = long_ttl});
  client b = make_client(client_options{.wait_limit = 200ms});
  const lease held = a.mutex("orders").acquire();
  EXPECT_EQ(thrown_by([&] { (void)b.mutex("orders").acquire(); }), errc::timed_out);
}

// A waiter that gave up must not stay in a queue in front of those who come later.
CONTRACT(TimedOutWaitLeavesNothingBehind) {
  client a = make_client(lock_options{.ttl = long_ttl});
  client b = make_client(lock_options{.ttl = long_ttl});
  client c = make_client(lock_options{.ttl = long_ttl});
  lease held = a.mutex("orders").acquire();
  EXPECT_FALSE(b.mutex("orders").try_acquire(100ms));
  ASSERT_TRUE(held.release());
  EXPECT_TRUE(c.mutex("orders").try_acquire());
}

CONTRACT(StopTokenEndsAWaitAndLeavesNothing) {
  client a = make_client(lock_options{.ttl = long_ttl});
  const auto seen = std::make_shared<recorder>();
  client b = make_client(client_options{.lock = {.ttl = long_ttl}, .observer = seen});
  client c = make_client(lock_options{.ttl = long_ttl});
  lease held = a.mutex("orders").acquire();

  std::stop_source stop;
  std::optional<lease> got;
  std::thread waiter{[&] { got = b.mutex("orders").try_acquire(forever, stop.get_token()); }};
  EXPECT_TRUE(seen->await(event::kind::waiting));
  const auto stopped = runtime::now();
  stop.request_stop();
  waiter.join();
  EXPECT_LT(runtime::now() - stopped, 20s);
  EXPECT_FALSE(got);

  ASSERT_TRUE(held.release());
  EXPECT_TRUE(c.mutex("orders").try_acquire());
}

CONTRACT(StopTokenMakesAcquireThrow) {
  client a = make_client(lock_options{.ttl = long_ttl});
  const auto seen = std::make_shared<recorder>();
  client b = make_client(client_options{.lock = {.ttl = long_ttl}, .observer = seen});
  const lease held = a.mutex("orders").acquire();
  std::stop_source stop;
  errc code{};
  std::thread waiter{
      [&] { code = thrown_by([&] { (void)b.mutex("orders").acquire(stop.get_token()); }); }};
  EXPECT_TRUE(seen->await(event::kind::waiting));
  stop.request_stop();
  waiter.join();
  EXPECT_EQ(code, errc::stopped);
}

CONTRACT(ClientStopEndsEveryWaitAndKeepsLeases) {
  client a = make_client(lock_options{.ttl = long_ttl});
  const auto seen = std::make_shared<recorder>();
  client b = make_client(client_options{.lock = {.ttl = long_ttl}, .observer = seen});
  const lease held = a.mutex("orders").acquire();
  const lease own = b.mutex("stock").acquire();
  errc acquire_code{};
  errc lock_code{};
  std::thread one{[&] { acquire_code = thrown_by([&] { (void)b.mutex("orders").acquire(); }); }};
  std::thread other{[&] { lock_code = thrown_by([&] { b.mutex("orders").lock(); }); }};
  EXPECT_TRUE(seen->await(event::kind::waiting, 2));
  b.stop();
  one.join();
  other.join();
  EXPECT_EQ(acquire_code, errc::stopped);
  EXPECT_EQ(lock_code, errc::stopped);
  EXPECT_EQ(thrown_by([&] { (void)b.mutex("orders").acquire(); }), errc::stopped);
  EXPECT_TRUE(own.held());
}

CONTRACT(NamesAreAnyBytes) {
  using namespace std::string_literals;
  client a = make_client();
  client b = make_client();
  const std::vector<std::string> names{"a\0b"s,     "a"s,       "two words\n\t"s,
                                       "{braces}"s, "a}b"s,     "*?[x]"s,
                                       "\xff\xfe"s, "ünïcode"s, std::string(512, 'x')};
  std::vector<lease> all;
  for (const std::string& name : names) {
    all.push_back(a.mutex(name).acquire());
    EXPECT_EQ(all.back().name(), name);
    EXPECT_FALSE(b.mutex(name).try_acquire()) << escape(name);
    EXPECT_EQ(b.status(name).holder.value().token, all.back().token());
  }
  for (lease& one : all)
    EXPECT_TRUE(one.release()) << escape(one.name());
}

CONTRACT(NamesOfNoneOrTooManyBytesAreRefused) {
  client c = make_client();
  EXPECT_EQ(thrown_by([&] { (void)c.mutex(""); }), errc::invalid_argument);
  EXPECT_EQ(thrown_by([&] { (void)c.mutex(std::string(513, 'x')); }), errc::invalid_argument);
  EXPECT_EQ(thrown_by([&] { (void)c.status(""); }), errc::invalid_argument);
}

}  // namespace holdfast::test
