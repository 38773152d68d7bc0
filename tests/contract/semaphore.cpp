// So many at a time.
#include <algorithm>
#include <atomic>
#include <csignal>
#include <future>
#include <set>
#include <thread>

#include <gmock/gmock.h>

#include "support/contract.hpp"
#include "support/holder_process.hpp"

using namespace std::chrono_literals;

namespace holdfast::test {

using testing::AllOf;
using testing::HasSubstr;

namespace {

using waited = std::future<std::optional<lease>>;

waited wait_for(client& c, std::uint32_t permits, std::uint32_t of) {
  return std::async(std::launch::async, [&c, permits, of] {
    return c.semaphore("slots", of).try_acquire(permits, patience);
  });
}
bool come_to_wait(client& looks, std::size_t count) {
  return eventually([&] { return looks.status("slots").waiting == count; });
}
bool is_waiting(waited& one) { return one.wait_for(0s) != std::future_status::ready; }

}  // namespace

CONTRACT_OF_PERMITS(SemaphoreLetsInAsManyAsItHasPermits) {
  client a = make_client();
  client b = make_client();
  semaphore slots = a.semaphore("slots", 2);
  auto one = slots.try_acquire();
  auto other = b.semaphore("slots", 2).try_acquire();
  ASSERT_TRUE(one && other);
  EXPECT_GT(other->token(), one->token());
  EXPECT_FALSE(slots.try_acquire());
  ASSERT_TRUE(one->release());
  EXPECT_TRUE(slots.try_acquire());
}

CONTRACT_OF_PERMITS(CapacityIsNeverExceeded) {
  constexpr std::uint32_t permits = 3;
  constexpr int clients = 3;
  constexpr int threads_each = 3;
  constexpr int rounds = 10;
  std::atomic<std::uint32_t> inside{0};
  std::atomic<std::uint32_t> most{0};
  std::mutex m;
  std::set<std::uint64_t> tokens;  // protected by m
  std::vector<std::thread> threads;
  for (int i = 0; i < clients; ++i) {
    auto shared = std::make_shared<client>(make_client(lock_options{.ttl = long_ttl}));
    for (int j = 0; j < threads_each; ++j) {
      threads.emplace_back([&, shared, i, j] {
        semaphore slots = shared->semaphore("slots", permits);
        for (int k = 0; k < rounds; ++k) {
          const auto want = static_cast<std::uint32_t>(1 + (i + j + k) % 3);
          lease held = slots.acquire(want);
          const auto now = inside += want;
          for (auto seen = most.load(); seen < now && !most.compare_exchange_weak(seen, now);) {
          }
          {
            const std::lock_guard guard{m};
            EXPECT_TRUE(tokens.insert(held.token().value()).second);
          }
          inside -= want;
          EXPECT_TRUE(held.release());
        }
      });
    }
  }
  for (std::thread& t : threads)
    t.join();
  EXPECT_LE(most, permits);
  EXPECT_GT(most, 1U);
}

CONTRACT_OF_PERMITS(OneThatWantsManyIsNotOvertaken) {
  client holder = make_client(lock_options{.ttl = long_ttl});
  client many = make_client(lock_options{.ttl = long_ttl});
  client few = make_client(lock_options{.ttl = long_ttl});
  auto one = holder.semaphore("slots", 3).acquire();
  auto other = holder.semaphore("slots", 3).acquire();
  auto three = wait_for(many, 3, 3);
  ASSERT_TRUE(come_to_wait(holder, 1));
  EXPECT_FALSE(few.semaphore("slots", 3).try_acquire()) << "one is free, but not for the later one";
  auto later = wait_for(few, 1, 3);
  ASSERT_TRUE(come_to_wait(holder, 2));
  ASSERT_TRUE(one.release());
  EXPECT_TRUE(is_waiting(three));
  ASSERT_TRUE(other.release());
  auto got = three.get();
  ASSERT_TRUE(got);
  EXPECT_TRUE(is_waiting(later));
  ASSERT_TRUE(got->release());
  EXPECT_TRUE(later.get());
}

CONTRACT_OF_PERMITS(WaitersOfASemaphoreAreServedInOrder) {
  client holder = make_client(lock_options{.ttl = long_ttl});
  auto held = holder.semaphore("slots", 1).acquire();
  std::vector<client> clients;
  for (int i = 0; i < 4; ++i)
    clients.push_back(make_client(lock_options{.ttl = long_ttl}));
  std::vector<waited> waits;
  for (std::size_t i = 0; i < clients.size(); ++i) {
    waits.push_back(wait_for(clients[i], 1, 1));
    ASSERT_TRUE(come_to_wait(holder, i + 1));
  }
  ASSERT_TRUE(held.release());
  fencing_token last = held.token();
  for (std::size_t i = 0; i < waits.size(); ++i) {
    auto got = waits[i].get();
    ASSERT_TRUE(got);
    EXPECT_GT(got->token(), last);
    last = got->token();
    for (std::size_t j = i + 1; j < waits.size(); ++j)
      EXPECT_TRUE(is_waiting(waits[j]));
    ASSERT_TRUE(got->release());
  }
}

CONTRACT_OF_PERMITS(TimedOutWaitForPermitsLeavesNothingBehind) {
  client a = make_client(lock_options{.ttl = long_ttl});
  client b = make_client(lock_options{.ttl = long_ttl});
  const auto held = a.semaphore("slots", 2).acquire();
  EXPECT_FALSE(b.semaphore("slots", 2).try_acquire(2, 100ms));
  EXPECT_TRUE(b.semaphore("slots", 2).try_acquire());
  EXPECT_EQ(a.status("slots").waiting, 0U);
}

CONTRACT_OF_PERMITS(StopTokenEndsAWaitForPermits) {
  client a = make_client(lock_options{.ttl = long_ttl});
  const auto seen = std::make_shared<recorder>();
  client b = make_client(client_options{.lock = {.ttl = long_ttl}, .observer = seen});
  const auto held = a.semaphore("slots", 1).acquire();
  std::stop_source stop;
  errc code{};
  std::thread waiter{[&] {
    code = thrown_by([&] { (void)b.semaphore("slots", 1).acquire(1, stop.get_token()); });
  }};
  EXPECT_TRUE(seen->await(event::kind::waiting));
  stop.request_stop();
  waiter.join();
  EXPECT_EQ(code, errc::stopped);
  EXPECT_EQ(a.status("slots").waiting, 0U);
}

CONTRACT_OF_PERMITS(PermitsAreRenewedWhileHeld) {
  client a = make_client(lock_options{.ttl = kept_ttl});
  client b = make_client(lock_options{.ttl = kept_ttl});
  const auto one = a.semaphore("slots", 2).acquire();
  const auto other = b.semaphore("slots", 2).acquire();
  std::this_thread::sleep_for(kept_ttl * 3 / 2);
  EXPECT_TRUE(one.held() && other.held());
  EXPECT_FALSE(b.semaphore("slots", 2).try_acquire());
}

// What a waiter was given by another's release carries a short claim: it must become a whole lease.
CONTRACT_OF_PERMITS(PermitsThatWereHandedOverAreRenewed) {
  client a = make_client(lock_options{.ttl = kept_ttl});
  client b = make_client(lock_options{.ttl = kept_ttl});
  auto held = a.semaphore("slots", 1).acquire();
  auto waits = wait_for(b, 1, 1);
  ASSERT_TRUE(come_to_wait(a, 1));
  ASSERT_TRUE(held.release());
  const auto got = waits.get();
  ASSERT_TRUE(got);
  std::this_thread::sleep_for(kept_ttl * 3 / 2);
  EXPECT_TRUE(got->held());
  EXPECT_FALSE(a.semaphore("slots", 1).try_acquire());
}

CONTRACT_OF_PERMITS(PermitsOfOneThatIsSilentComeBack) {
  client a = make_client(lock_options{.ttl = long_ttl});
  client b = make_client(lock_options{.ttl = long_ttl});
  const auto stays = a.semaphore("slots", 3).acquire();
  const auto ends = a.semaphore("slots", 3, {.ttl = short_ttl, .renew = false}).acquire(2);
  EXPECT_TRUE(b.semaphore("slots", 3).try_acquire(2, patience));
  EXPECT_TRUE(stays.held());
  EXPECT_FALSE(ends.held());
}

CONTRACT_OF_PERMITS(LossOfAPermitIsTold) {
  client a = make_client(lock_options{.ttl = kept_ttl});
  auto held = a.semaphore("slots", 2).acquire();
  watched_token lost{held.lost()};
  store().lose("slots");
  ASSERT_TRUE(lost.wait());
  EXPECT_EQ(held.release().error().code, errc::lease_lost);
}

CONTRACT_OF_PERMITS(UsersMustNameTheSameNumberOfPermits) {
  client a = make_client(lock_options{.ttl = long_ttl});
  client b = make_client(lock_options{.ttl = long_ttl});
  {
    auto held = a.semaphore("slots", 2).acquire();
    try {
      (void)b.semaphore("slots", 5).try_acquire();
      ADD_FAILURE() << "acquired";
    } catch (const error& refused) {
      EXPECT_EQ(refused.code(), errc::invalid_argument);
      EXPECT_THAT(refused.what(), AllOf(HasSubstr("2 permits"), HasSubstr("5"))) << refused.what();
    }
    EXPECT_TRUE(held.release());
  }
  EXPECT_TRUE(b.semaphore("slots", 5).try_acquire(5, patience)) << "not in use";
}

CONTRACT_OF_PERMITS(MorePermitsThanThereAreAreRefused) {
  client a = make_client();
  semaphore slots = a.semaphore("slots", 2);
  EXPECT_EQ(thrown_by([&] { (void)slots.try_acquire(3); }), errc::invalid_argument);
  EXPECT_EQ(thrown_by([&] { (void)slots.acquire(0); }), errc::invalid_argument);
  EXPECT_EQ(thrown_by([&] { (void)slots.acquire(10'001); }), errc::invalid_argument);
  EXPECT_EQ(thrown_by([&] { (void)a.semaphore("none", 0); }), errc::invalid_argument);
  EXPECT_EQ(thrown_by([&] { slots.resize(0); }), errc::invalid_argument);
  EXPECT_TRUE(slots.try_acquire(2));
}

CONTRACT_OF_PERMITS(GrowingServesWaitersAtOnce) {
  client a = make_client(lock_options{.ttl = long_ttl});
  client b = make_client(lock_options{.ttl = long_ttl});
  client c = make_client(lock_options{.ttl = long_ttl});
  semaphore slots = a.semaphore("slots", 1);
  EXPECT_EQ(slots.capacity(), 1U);
  const auto held = slots.acquire();
  auto one = wait_for(b, 1, 1);
  ASSERT_TRUE(come_to_wait(a, 1));
  auto other = wait_for(c, 1, 1);
  ASSERT_TRUE(come_to_wait(a, 2));
  slots.resize(3);
  const auto first = one.get();
  const auto second = other.get();
  EXPECT_TRUE(first && second);
  EXPECT_EQ(b.semaphore("slots", 1).capacity(), 3U);
  EXPECT_FALSE(slots.try_acquire());
}

CONTRACT_OF_PERMITS(ShrinkingLetsHoldersFinish) {
  client a = make_client(lock_options{.ttl = long_ttl});
  semaphore slots = a.semaphore("slots", 3);
  auto one = slots.acquire();
  auto other = slots.acquire(2);
  slots.resize(1);
  EXPECT_TRUE(one.renew());
  EXPECT_TRUE(other.renew());
  ASSERT_TRUE(other.release());
  EXPECT_FALSE(slots.try_acquire()) << "one is held, and one there is";
  ASSERT_TRUE(one.release());
  EXPECT_TRUE(slots.try_acquire());
}

// It stays when nobody holds a permit, and wins over what its users name.
CONTRACT_OF_PERMITS(SizeThatWasSetStays) {
  client a = make_client(lock_options{.ttl = long_ttl});
  client b = make_client(lock_options{.ttl = long_ttl});
  a.semaphore("slots", 1).resize(2);
  EXPECT_EQ(a.status("slots").capacity, 2U);
  EXPECT_FALSE(a.status("slots").holder);
  EXPECT_TRUE(b.semaphore("slots", 7).acquire(2).release());
  EXPECT_EQ(b.semaphore("slots", 7).capacity(), 2U);
  auto one = b.semaphore("slots", 7).acquire();
  auto other = a.semaphore("slots", 1).acquire();
  EXPECT_FALSE(a.semaphore("slots", 1).try_acquire());
  EXPECT_TRUE(one.release());
  EXPECT_TRUE(other.release());
  EXPECT_EQ(a.semaphore("slots", 1).capacity(), 2U);
}

// One that waits for more than there is by now would hold back all behind it, for ever.
CONTRACT_OF_PERMITS(ShrinkingBelowWhatAWaiterWantsFailsIt) {
  client a = make_client(lock_options{.ttl = long_ttl});
  client b = make_client(lock_options{.ttl = long_ttl});
  client c = make_client(lock_options{.ttl = long_ttl});
  semaphore slots = a.semaphore("slots", 3);
  auto held = slots.acquire();
  errc code{};
  std::thread wants_all{
      [&] { code = thrown_by([&] { (void)b.semaphore("slots", 3).acquire(3, patience); }); }};
  EXPECT_TRUE(come_to_wait(a, 1));
  auto behind = wait_for(c, 1, 3);
  EXPECT_TRUE(come_to_wait(a, 2));
  slots.resize(2);
  wants_all.join();
  EXPECT_EQ(code, errc::invalid_argument);
  EXPECT_TRUE(behind.get());
}

CONTRACT_OF_PERMITS(StatusShowsHowManyPermitsAreInUse) {
  client a = make_client(lock_options{.ttl = long_ttl, .label = "encoder"});
  const auto one = a.semaphore("slots", 4).acquire();
  const auto other = a.semaphore("slots", 4).acquire(2);
  const auto seen = a.status("slots");
  EXPECT_EQ(seen.kind, lock_status::form::semaphore);
  EXPECT_EQ(seen.capacity, 4U);
  EXPECT_EQ(seen.units_in_use, 3U);
  ASSERT_EQ(seen.holders.size(), 2U);
  EXPECT_EQ(seen.holders[0].units, 1U);
  EXPECT_EQ(seen.holders[1].units, 2U);
  EXPECT_EQ(seen.holders[1].label, "encoder");
  EXPECT_EQ(seen.holders[1].token, other.token());
}

CONTRACT_OF_PERMITS_BETWEEN_PROCESSES(KilledHoldersPermitsComeBack) {
  client c = make_client(lock_options{.ttl = long_ttl});
  holder_process killed{store().url(), "slots", short_ttl, holder_process::part{"2/3"}};
  const auto one = c.semaphore("slots", 3).acquire();
  EXPECT_FALSE(c.semaphore("slots", 3).try_acquire());
  killed.child().signal(SIGKILL);
  EXPECT_TRUE(c.semaphore("slots", 3).try_acquire(2, patience));
}

}  // namespace holdfast::test
