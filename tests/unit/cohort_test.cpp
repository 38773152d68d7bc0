// Threads of one client that want the same lock, without a store.
#include "client/cohort.hpp"

#include <future>
#include <optional>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/lease_state.hpp"
#include "runtime/clock.hpp"
#include "support/event_loop.hpp"
#include "support/process.hpp"
#include "support/watch.hpp"

using namespace std::chrono_literals;

namespace holdfast::test {

namespace {

using detail::cohort;
using detail::lease_state;
using detail::lock_terms;
using role = detail::cohort::role;

// Waits on this thread.
cohort::place enter_here(cohort& line, const lock_terms& terms, core::time_point until,
                         const std::stop_token& stop = {}) {
  std::optional<cohort::place> got;
  const auto turn = line.enter(terms, until, [&](cohort::place told) { got = std::move(told); });
  EXPECT_EQ(turn == nullptr, got.has_value());
  if (!turn) return *got;
  const std::stop_callback end{stop, [&] { turn->end(); }};
  turn->wait();
  return *got;
}

class CohortLine : public testing::Test {
 protected:
  // A lease that holds nothing: only who gets it matters here.
  static std::shared_ptr<lease_state> lease_for(const lock_terms& terms) {
    return std::make_shared<lease_state>(nullptr, nullptr, core::owner_id{}, core::grant{}, terms,
                                         core::time_point{}, std::nullopt);
  }
  bool pass(const std::string& label = {}) { return line.pass(label, lease_for); }

  cohort::place enter(const lock_terms& with = {}, const std::stop_token& stop = {},
                      core::duration wait = patience) {
    return enter_here(line, with, runtime::now() + wait, stop);
  }
  // A thread that enters, once it waits.
  std::future<role> waiter(const lock_terms& with = {}, std::stop_token stop = {}) {
    const auto before = line.waiting();
    auto got = std::async(std::launch::async,
                          [this, with, stop = std::move(stop)] { return enter(with, stop).what; });
    EXPECT_TRUE(eventually([&] { return line.waiting() > before; }));
    return got;
  }
  static bool still_waits(std::future<role>& one) {
    return one.wait_for(0s) != std::future_status::ready;
  }

  cohort line;
};

}  // namespace

TEST_F(CohortLine, FirstAsksAtOnceAndDoesNotWait) {
  std::optional<role> got;
  const lock_terms terms;
  EXPECT_EQ(line.enter(terms, runtime::now(), [&](const auto& told) { got = told.what; }), nullptr);
  EXPECT_EQ(got, role::asks);
  EXPECT_EQ(line.waiting(), 0U);
}

// A caller that is told by events has its turn in turn with everything else that happens to it.
TEST_F(CohortLine, TurnIsToldByEvents) {
  ASSERT_EQ(enter().what, role::asks);
  event_loop loop;
  const lock_terms terms;
  std::vector<role> got;
  const auto join = [&](core::duration wait) {
    auto turn = line.enter(terms, runtime::now() + wait,
                           [&](const auto& told) { got.push_back(told.what); });
    turn->watch(loop);
    return turn;
  };
  const auto first = join(patience);
  const auto second = join(patience);
  const auto third = join(1ms);
  ASSERT_TRUE(loop.run_until([&] { return got.size() == 1; })) << "the end of its wait";
  second->end();
  std::thread elsewhere{[&] { EXPECT_TRUE(pass()); }};
  elsewhere.join();
  EXPECT_THAT(got, testing::ElementsAre(role::gave_up));
  ASSERT_TRUE(loop.run_until([&] { return got.size() == 3; }));
  EXPECT_THAT(got, testing::ElementsAre(role::gave_up, role::gave_up, role::handed));
  EXPECT_EQ(line.waiting(), 0U);
}

TEST_F(CohortLine, WhoLeavesLetsTheNextOneAsk) {
  ASSERT_EQ(enter().what, role::asks);
  auto second = waiter();
  auto third = waiter();
  line.leave();
  EXPECT_EQ(second.get(), role::asks);
  EXPECT_TRUE(still_waits(third));
  line.leave();
  EXPECT_EQ(third.get(), role::asks);
  line.leave();
  EXPECT_EQ(enter().what, role::asks) << "nobody asks or holds any more";
}

TEST_F(CohortLine, PassesInTheOrderOfComing) {
  ASSERT_EQ(enter().what, role::asks);
  std::vector<std::future<role>> all;
  for (int i = 0; i < 5; ++i)
    all.push_back(waiter());
  for (std::size_t i = 0; i < all.size(); ++i) {
    EXPECT_TRUE(pass());
    EXPECT_EQ(all[i].get(), role::handed);
    EXPECT_TRUE(i + 1 == all.size() || still_waits(all[i + 1]));
  }
  EXPECT_FALSE(pass()) << "nobody waits";
}

TEST_F(CohortLine, PassesOnlyToTheSameLabel) {
  ASSERT_EQ(enter().what, role::asks);
  auto other = waiter({.rule = {}, .label = "nightly"});
  EXPECT_FALSE(pass("daily"));
  EXPECT_TRUE(still_waits(other));
  EXPECT_TRUE(pass("nightly"));
  EXPECT_EQ(other.get(), role::handed);
}

TEST_F(CohortLine, LeaseThatCannotBeMadeLeavesTheLineAsItWas) {
  ASSERT_EQ(enter().what, role::asks);
  auto next = waiter();
  EXPECT_FALSE(line.pass({}, [](const auto&) { return nullptr; }));
  EXPECT_EQ(line.waiting(), 1U);
  line.leave();
  EXPECT_EQ(next.get(), role::asks);
}

TEST_F(CohortLine, EndOfTheWaitLeavesTheLine) {
  ASSERT_EQ(enter().what, role::asks);
  EXPECT_EQ(enter({}, {}, 10ms).what, role::gave_up);
  EXPECT_EQ(line.waiting(), 0U);
  EXPECT_FALSE(pass());
}

TEST_F(CohortLine, WhoGivesUpIsToldWhomTheOneThatAsksHasMet) {
  ASSERT_EQ(enter().what, role::asks);
  EXPECT_FALSE(enter({}, {}, 10ms).met) << "the store was not heard yet";
  line.on_met(core::busy{{.host = "elsewhere"}, 1s});
  const auto behind = enter({}, {}, 10ms);
  ASSERT_TRUE(behind.met);
  EXPECT_EQ(behind.met->holder.host, "elsewhere");
  line.on_met({});
  EXPECT_FALSE(enter({}, {}, 10ms).met) << "the lock is ours";
}

TEST_F(CohortLine, WhatOneThatAskedHasMetIsForgottenWhenItLeaves) {
  ASSERT_EQ(enter().what, role::asks);
  line.on_met(core::busy{{.host = "elsewhere"}, 1s});
  line.leave();
  ASSERT_EQ(enter().what, role::asks);
  EXPECT_FALSE(enter({}, {}, 10ms).met);
}

TEST_F(CohortLine, StoppedOneLeavesAndTheOthersKeepTheirPlaces) {
  ASSERT_EQ(enter().what, role::asks);
  std::stop_source stop;
  auto first = waiter({}, stop.get_token());
  auto second = waiter();
  stop.request_stop();
  EXPECT_EQ(first.get(), role::gave_up);
  EXPECT_TRUE(pass());
  EXPECT_EQ(second.get(), role::handed);
}

TEST_F(CohortLine, StopThatCameBeforeEndsTheWaitAtOnce) {
  ASSERT_EQ(enter().what, role::asks);
  std::stop_source stop;
  stop.request_stop();
  EXPECT_EQ(enter({}, stop.get_token()).what, role::gave_up);
}

TEST_F(CohortLine, ClosingWakesEverybodyAndTakesNobodyElse) {
  ASSERT_EQ(enter().what, role::asks);
  std::vector<std::future<role>> all;
  for (int i = 0; i < 4; ++i)
    all.push_back(waiter());
  line.close();
  for (auto& one : all)
    EXPECT_EQ(one.get(), role::gave_up);
  EXPECT_EQ(enter().what, role::gave_up);
  line.leave();  // the one that asked: nobody is left to be served
  EXPECT_EQ(enter().what, role::gave_up);
}

// Those who have waited for long need not each find out; who has just come has a try.
TEST_F(CohortLine, FailureIsToldToThoseWhoWaitedForTheLimit) {
  ASSERT_EQ(enter().what, role::asks);
  auto old = waiter();
  let_pass(50ms);
  auto fresh = waiter();
  line.leave({errc::store_unreachable, "gone", {}}, 40ms);
  EXPECT_EQ(old.get(), role::failed);
  EXPECT_EQ(fresh.get(), role::asks);
  line.leave();
  EXPECT_EQ(enter().what, role::asks);
}

// What is handed over together with a stop or the end of a wait has one owner, and is not lost.
TEST_F(CohortLine, LeaseIsNeverHandedToSomebodyWhoHasGone) {
  ASSERT_EQ(enter().what, role::asks);
  for (int i = 0; i < 300; ++i) {
    std::stop_source stop;
    auto one = waiter({}, stop.get_token());
    std::thread stopper{[&] { stop.request_stop(); }};
    const bool passed = pass();
    stopper.join();
    EXPECT_EQ(one.get(), passed ? role::handed : role::gave_up);
  }
  EXPECT_EQ(line.waiting(), 0U);
}

// --- those who come right back
// ---------------------------------------------------------------

namespace {

// Threads that have the lock, give it to the next and come back, until it has been passed so often.
struct relay {
  explicit relay(cohort& on) : line{on} {}

  void run(int me) {
    lock_terms terms;
    for (;;) {
      auto got = enter_here(line, terms, core::never);
      if (got.what == role::gave_up) return;
      if (first_turn_of.at(static_cast<std::size_t>(me)) < 0)
        first_turn_of.at(static_cast<std::size_t>(me)) = passed;
      if (++passed >= passes) return line.close();
      while (!line.pass({}, [&](const lock_terms& t) {
        return std::make_shared<lease_state>(nullptr, nullptr, core::owner_id{}, core::grant{}, t,
                                             core::time_point{}, std::nullopt);
      }))
        std::this_thread::yield();
    }
  }

  cohort& line;
  static constexpr int passes = 20'000;
  int passed = 0;  // guarded by having the lock
  std::array<int, 6> first_turn_of{-1, -1, -1, -1, -1, -1};
};

}  // namespace

// Nobody ever leaves here, so it is one endless turn: those who come back go first only at its
// beginning, and then everybody has been served.
TEST_F(CohortLine, NobodyStarvesBehindThoseWhoComeBack) {
  relay all{line};
  std::vector<std::thread> threads;
  for (int i = 0; i < static_cast<int>(all.first_turn_of.size()); ++i)
    threads.emplace_back([&, i] { all.run(i); });
  for (auto& one : threads)
    one.join();
  EXPECT_THAT(all.first_turn_of, testing::Each(testing::Ge(0)));
}

// With the next turn, those who came back stand behind everybody else.
TEST_F(CohortLine, NextTurnBeginsWithTheOneAsleepLongest) {
  ASSERT_EQ(enter().what, role::asks);
  auto asleep = waiter();
  auto later = waiter();
  // This thread gives it to `asleep` and is back: it had the lock a moment ago.
  ASSERT_TRUE(pass());
  EXPECT_EQ(asleep.get(), role::handed);
  std::thread giver{[&] {
    ASSERT_TRUE(eventually([&] { return line.waiting() == 2; }));
    line.leave();
    EXPECT_EQ(later.get(), role::asks);
    line.leave();
  }};
  EXPECT_EQ(enter().what, role::asks);
  giver.join();
}

}  // namespace holdfast::test
