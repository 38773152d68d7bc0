// Waiting until so many have counted.
#include <atomic>
#include <csignal>
#include <future>
#include <thread>

#include <gmock/gmock.h>

#include "support/contract.hpp"

using namespace std::chrono_literals;

namespace holdfast::test {

using testing::HasSubstr;

namespace {

std::future<bool> wait_for(client& c, std::uint32_t count, latch_options options = {}) {
  return std::async(std::launch::async,
                    [&c, count, options] { return c.latch("all", count, options).wait(patience); });
}
bool come_to_wait(client& c, std::uint64_t count = 1) {
  return eventually([&] { return c.counters().waiting_now == count; });
}
bool is_waiting(std::future<bool>& one) { return one.wait_for(0s) != std::future_status::ready; }

}  // namespace

CONTRACT_OF_SHARES(LatchOpensWhenAllHaveCounted) {
  client a = make_client();
  client b = make_client();
  latch all = a.latch("all", 3);
  EXPECT_EQ(all.value(), 3U);
  EXPECT_EQ(all.count_down(), 2U);
  EXPECT_EQ(b.latch("all", 3).count_down(), 1U);
  EXPECT_FALSE(all.try_wait());
  EXPECT_FALSE(b.latch("all", 3).wait(50ms));
  EXPECT_EQ(all.count_down(), 0U);
  EXPECT_TRUE(all.try_wait());
  EXPECT_NO_THROW(b.latch("all", 3).wait());
  EXPECT_TRUE(b.latch("all", 3).wait(0s)) << "one that comes late finds it open";
}

CONTRACT_OF_SHARES(ThoseWhoWaitForALatchAreLetGoTogether) {
  client a = make_client();
  client b = make_client();
  auto one = wait_for(a, 2);
  auto other = wait_for(a, 2);
  auto elsewhere = wait_for(b, 2);
  ASSERT_TRUE(come_to_wait(a, 2));
  ASSERT_TRUE(come_to_wait(b));
  client counts = make_client();
  EXPECT_EQ(counts.latch("all", 2).count_down(), 1U);
  EXPECT_TRUE(is_waiting(one) && is_waiting(other) && is_waiting(elsewhere));
  EXPECT_EQ(counts.latch("all", 2).count_down(), 0U);
  EXPECT_TRUE(one.get());
  EXPECT_TRUE(other.get());
  EXPECT_TRUE(elsewhere.get());
}

// A process that was killed after it had counted, and is started again, does its work again.
CONTRACT_OF_SHARES(PartOfALatchCountsOnce) {
  client a = make_client();
  client again = make_client();
  EXPECT_EQ(a.latch("all", 2).count_down("unit tests"), 1U);
  EXPECT_EQ(again.latch("all", 2).count_down("unit tests"), 1U);
  EXPECT_FALSE(a.latch("all", 2).try_wait());
  EXPECT_EQ(again.latch("all", 2).count_down(std::string{"\0;=\n", 4}), 0U) << "any bytes";
  EXPECT_EQ(again.latch("all", 2).count_down("unit tests"), 0U) << "also when it is open";
}

CONTRACT_OF_SHARES(SeveralAreCountedAtOnce) {
  client a = make_client();
  latch all = a.latch("all", 10'000);
  EXPECT_EQ(all.count_down(9'998), 2U);
  EXPECT_EQ(thrown_by([&] { all.count_down(3); }), errc::invalid_argument);
  EXPECT_EQ(all.value(), 2U) << "nothing was counted";
  EXPECT_EQ(all.count_down(2), 0U);
}

// A worker that meets the latch of an earlier run hears of it.
CONTRACT_OF_SHARES(CountingAnOpenLatchIsRefused) {
  client a = make_client();
  latch all = a.latch("all", 1);
  all.count_down();
  const auto said = all.count_down_result();
  ASSERT_FALSE(said);
  EXPECT_EQ(said.error().code, errc::invalid_argument);
  EXPECT_THAT(said.error().message, HasSubstr("earlier run"));
  EXPECT_TRUE(all.try_wait());
}

CONTRACT_OF_SHARES(LatchThatIsStartedAnewIsClosed) {
  client a = make_client();
  client b = make_client();
  latch all = a.latch("all", 2);
  all.count_down("unit");
  all.count_down("style");
  b.latch("all", 3).reset();
  latch next = a.latch("all", 3);
  EXPECT_EQ(next.value(), 3U);
  EXPECT_FALSE(next.wait(50ms));
  EXPECT_EQ(next.count_down("unit"), 2U);
  EXPECT_EQ(thrown_by([&] { static_cast<void>(all.value()); }), errc::invalid_argument)
      << "it names another count";
}

CONTRACT_OF_SHARES(WaitForARunThatIsStartedAnewIsToldSo) {
  client a = make_client();
  client b = make_client();
  a.latch("all", 2).count_down();
  errc code{};
  std::thread waits{
      [&] { code = thrown_by([&] { static_cast<void>(b.latch("all", 2).wait(patience)); }); }};
  EXPECT_TRUE(come_to_wait(b));
  a.latch("all", 2).reset();
  waits.join();
  EXPECT_EQ(code, errc::outcome_unknown);
}

// A program that waits for one round after the other must not miss one, however soon the next one
// begins.
CONTRACT_OF_SHARES(RoundThatOpenedLetsItsWaitersGoAlsoWhenTheNextHasBegun) {
  client a = make_client();
  client b = make_client();
  latch all = a.latch("all", 2);
  for (int round = 0; round < 10; ++round) {
    all.reset();
    auto waits = wait_for(b, 2);
    ASSERT_TRUE(come_to_wait(b));
    all.count_down();
    all.count_down();
    all.reset();
    ASSERT_TRUE(waits.get()) << "round " << round;
  }
}

CONTRACT_OF_SHARES(StopTokenEndsAWaitForALatch) {
  client a = make_client();
  std::stop_source stop;
  errc code{};
  std::thread waits{[&] { code = thrown_by([&] { a.latch("all", 1).wait(stop.get_token()); }); }};
  EXPECT_TRUE(come_to_wait(a));
  stop.request_stop();
  waits.join();
  EXPECT_EQ(code, errc::stopped);
  EXPECT_EQ(a.counters().waiting_now, 0U);
}

CONTRACT_OF_SHARES(StoppedClientEndsWaitsForLatches) {
  client a = make_client();
  auto waits = wait_for(a, 1);
  ASSERT_TRUE(come_to_wait(a));
  a.stop();
  EXPECT_FALSE(waits.get());
  EXPECT_EQ(a.latch("all", 1).count_down(), 0U) << "what has to be said is said";
}

CONTRACT_OF_SHARES(WaitForALatchThatTakesTooLongSaysHowManyAreMissing) {
  client a = make_client({.wait_limit = 50ms});
  a.latch("all", 3).count_down();
  std::string what;
  EXPECT_EQ(thrown_by([&] { a.latch("all", 3).wait(); }, &what), errc::timed_out);
  EXPECT_THAT(what, HasSubstr("2 have not counted"));
  EXPECT_EQ(a.latch("all", 3).wait_result(10ms).error().code, errc::timed_out);
}

CONTRACT_OF_SHARES(UsersOfALatchMustNameTheSameCount) {
  client a = make_client();
  a.latch("all", 3).count_down();
  std::string what;
  EXPECT_EQ(thrown_by([&] { a.latch("all", 4).count_down(); }, &what), errc::invalid_argument);
  EXPECT_THAT(what, testing::AllOf(HasSubstr("3"), HasSubstr("4")));
  EXPECT_EQ(thrown_by([&] { a.latch("all", 4).wait(); }), errc::invalid_argument);
  EXPECT_EQ(a.latch("all", 3).value(), 2U);
}

CONTRACT_OF_SHARES(ArgumentsOfALatchAreChecked) {
  client a = make_client();
  EXPECT_EQ(thrown_by([&] { static_cast<void>(a.latch("all", 0)); }), errc::invalid_argument);
  EXPECT_EQ(thrown_by([&] { static_cast<void>(a.latch("all", 10'001)); }), errc::invalid_argument);
  EXPECT_EQ(thrown_by([&] { static_cast<void>(a.latch("", 1)); }), errc::invalid_argument);
  EXPECT_EQ(thrown_by([&] { static_cast<void>(a.latch("all", 1, {.keep = 0s})); }),
            errc::invalid_argument);
  latch all = a.latch("all", 1);
  EXPECT_EQ(thrown_by([&] { all.count_down(0); }), errc::invalid_argument);
  EXPECT_EQ(thrown_by([&] { all.count_down(""); }), errc::invalid_argument);
  EXPECT_EQ(thrown_by([&] { all.count_down(std::string(257, 'x')); }), errc::invalid_argument);
  latch moved = std::move(all);
  // NOLINTNEXTLINE(bugprone-use-after-move): that is what is tested
  EXPECT_EQ(thrown_by([&] { all.count_down(); }), errc::invalid_argument);
  EXPECT_EQ(moved.name(), "all");
  EXPECT_EQ(moved.count_down(), 0U);
}

CONTRACT_OF_SHARES(NameStandsForALatchOrForALock) {
  client a = make_client();
  a.latch("all", 2).count_down();
  EXPECT_EQ(thrown_by([&] { static_cast<void>(a.mutex("all").try_acquire()); }), errc::wrong_type);
  EXPECT_EQ(thrown_by([&] { static_cast<void>(a.semaphore("all", 2).try_acquire()); }),
            errc::wrong_type);
  EXPECT_EQ(thrown_by([&] { a.semaphore("all", 2).resize(3); }), errc::wrong_type);
  const auto held = a.mutex("lock").acquire();
  const auto slot = a.semaphore("slots", 2).acquire();
  for (const auto* name : {"lock", "slots"}) {
    EXPECT_EQ(thrown_by([&] { a.latch(name, 2).count_down(); }), errc::wrong_type);
    EXPECT_EQ(thrown_by([&] { static_cast<void>(a.latch(name, 2).value()); }), errc::wrong_type);
    EXPECT_EQ(thrown_by([&] { a.latch(name, 2).reset(); }), errc::wrong_type);
  }
  EXPECT_TRUE(held.held() && slot.held());
}

CONTRACT_OF_SHARES(StatusShowsHowManyHaveToCountYet) {
  client a = make_client();
  a.latch("all", 5).count_down(2);
  const auto seen = a.status("all");
  EXPECT_EQ(seen.kind, lock_status::form::latch);
  EXPECT_EQ(seen.capacity, 5U);
  EXPECT_EQ(seen.units_in_use, 3U);
  EXPECT_FALSE(seen.holder);
}

// Yesterday's run is forgotten, and one that is waited for is not.
CONTRACT_OF_SHARES(LatchThatNobodyUsesIsForgotten) {
  client a = make_client();
  constexpr latch_options soon{.keep = 1s};
  latch all = a.latch("all", 1, soon);
  all.count_down();
  EXPECT_TRUE(all.try_wait());
  EXPECT_TRUE(eventually([&] { return !all.try_wait(); }));
  EXPECT_EQ(all.count_down(), 0U);

  client b = make_client();
  a.latch("other", 2, soon).count_down("first");
  auto waits =
      std::async(std::launch::async, [&] { return b.latch("other", 2, soon).wait(patience); });
  std::this_thread::sleep_for(2500ms);
  EXPECT_EQ(a.latch("other", 2, soon).count_down("second"), 0U);
  EXPECT_TRUE(waits.get());
}

CONTRACT_OF_SHARES(ManyCountAndManyWait) {
  constexpr std::uint32_t parties = 24;
  std::vector<client> clients;
  for (int i = 0; i < 3; ++i)
    clients.push_back(make_client());
  std::atomic<std::uint32_t> arrived{0};
  std::atomic<bool> early{false};
  std::vector<std::thread> threads;
  for (std::uint32_t i = 0; i < parties; ++i) {
    threads.emplace_back([&, i] {
      latch all = clients[i % clients.size()].latch("all", parties);
      ++arrived;
      all.count_down("part " + std::to_string(i));
      all.wait(patience) ? void(early = early || arrived != parties) : void(early = true);
    });
  }
  for (auto& one : threads)
    one.join();
  EXPECT_FALSE(early);
}

CONTRACT_WITHOUT_SHARES(LatchIsRefusedWithTheReason) {
  client a = make_client();
  std::string what;
  EXPECT_EQ(thrown_by([&] { static_cast<void>(a.latch("all", 2)); }, &what), errc::unsupported);
  EXPECT_THAT(what, HasSubstr("latch"));
}

}  // namespace holdfast::test
