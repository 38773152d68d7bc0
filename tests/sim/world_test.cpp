// The simulator itself: it replays, and what it stands on does what it says.
#include "sim/world.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/run.hpp"

namespace holdfast::sim {

namespace {

const mutant& named(std::string_view name) {
  for (const auto& one : mutants()) {
    if (one.name == name) return one;
  }
  throw std::runtime_error{"no such mutant"};
}

TEST(Simulation, ReplaysASeedToTheSameTrace) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const auto first = run_seed(seed, nullptr, true);
    const auto second = run_seed(seed, nullptr, true);
    EXPECT_EQ(first.trace, second.trace);
    EXPECT_EQ(first.fingerprint, run_seed(seed, nullptr, false).fingerprint)
        << "looking changes what happens";
    EXPECT_GE(first.acquisitions, 100U);
    EXPECT_EQ(first.plan.starts_with("1 node,"), store_of(seed) == store_kind::redis);
    EXPECT_FALSE(first.found) << first.found->promise << ": " << first.found->what;
  }
}

TEST(Simulation, SeedsDiffer) {
  EXPECT_NE(run_seed(1, nullptr, false).fingerprint, run_seed(2, nullptr, false).fingerprint);
}

TEST(Simulation, NamesTheSameFailingSeedOnAnyNumberOfThreads) {
  const auto& planted = named("counter-alone");
  const auto one = run_seeds(1, 200, &planted, 1);
  const auto several = run_seeds(1, 200, &planted, 4);
  ASSERT_TRUE(one.failing_seed);
  EXPECT_EQ(one.failing_seed, several.failing_seed);
  const auto again = run_seed(*one.failing_seed, &planted, true);
  ASSERT_TRUE(again.found);
  EXPECT_EQ(again.found->what, one.found->what);
  EXPECT_THAT(again.trace.back(), testing::HasSubstr(one.found->what));
}

TEST(Simulation, RunsSeedsOfOneStore) {
  const auto& planted = named("raise-unchecked");
  const auto found = run_seeds(1, 200, &planted, 2, store_kind::redlock);
  ASSERT_TRUE(found.failing_seed);
  EXPECT_EQ(store_of(*found.failing_seed), store_kind::redlock);
  EXPECT_EQ(run_seeds(1, 10, nullptr, 2, store_kind::redlock).seeds, 10U);
}

TEST(Simulation, RunsSeedsThatHaveAFault) {
  constexpr auto fault_meant = fault::repair_overtaken;
  std::uint64_t having = 0;
  for (std::uint64_t seed = 2; seed < 1002; seed += 2)
    having += plan{seed}.has(fault_meant) ? 1U : 0U;
  const auto all = run_seeds(2, 500, nullptr, 2, store_kind::redlock, fault_meant);
  EXPECT_GT(having, 0U);
  EXPECT_EQ(all.seeds, having);
  EXPECT_FALSE(all.found);

  const auto& planted = named("repair-unguarded");
  const auto one = run_seeds(2, 5000, &planted, 1, store_kind::redlock, fault_meant);
  const auto several = run_seeds(2, 5000, &planted, 4, store_kind::redlock, fault_meant);
  ASSERT_TRUE(one.failing_seed);
  EXPECT_TRUE(plan{*one.failing_seed}.has(fault_meant));
  EXPECT_EQ(one.failing_seed, several.failing_seed);
  EXPECT_EQ(one.seeds, several.seeds) << "the number of those that it took";
}

TEST(Simulation, CallsAFaultByItsName) {
  for (int kind = 0; kind < fault_kinds; ++kind) {
    const auto what = static_cast<fault>(kind);
    EXPECT_EQ(fault_called(name_of(what)), what);
  }
  EXPECT_FALSE(fault_called("no such fault"));
}

TEST(Simulation, RefusesAMutationThatFitsNoMore) {
  for (const auto* script : {"release", "redlock/raise"}) {
    mutant old{"old", "", {{script, "text that was there once", "x"}}, {}};
    EXPECT_THROW(static_cast<void>(run_seed(1, &old, false)), std::runtime_error);
  }
}

TEST(Timeline, HappensInOrderAndThenStandsAtTheEnd) {
  timeline time;
  std::string seen;
  time.at(20, [&] { seen += 'c'; });
  time.at(10, [&] {
    seen += 'a';
    time.at(5, [&] { seen += 'b'; });  // the past is now
  });
  time.at(31, [&] { seen += 'd'; });
  while (time.step(30)) {
  }
  EXPECT_EQ(seen, "abc");
  EXPECT_EQ(time.now(), 30);
}

TEST(DriftingClock, FindsTheFirstInstantOfAReading) {
  random_stream random{1};
  for (int i = 0; i < 2000; ++i) {
    drifting_clock clock{random.between(0, 1'000'000'000), random.between(-100'000, 100'000)};
    if (random.chance(300)) clock.step(random.between(-5 * second, 5 * second));
    const auto reading = clock.read(random.spread(1, 700 * second));
    const auto when = clock.when(reading);
    ASSERT_GE(clock.read(when), reading);
    ASSERT_TRUE(when == 0 || clock.read(when - 1) < reading);
  }
}

TEST(Process, WhatReachesItWhileStoppedWaits) {
  timeline time;
  process one{time, "p", {0, 0}, {0, 0}, 1};
  std::string seen;
  one.at(core::time_point{core::duration{10}}, [&] { seen += 't'; });
  one.stop();
  while (time.step(50)) {
  }
  one.reach(one.life(), [&] { seen += 'm'; });
  EXPECT_EQ(seen, "");
  one.proceed();
  EXPECT_EQ(seen, "tm");
  const auto before = one.life();
  one.kill();
  one.start();
  one.reach(before, [&] { seen += 'x'; });
  EXPECT_EQ(seen, "tm") << "meant for a life that is over";
}

}  // namespace

}  // namespace holdfast::sim
