// Several locks at once, or none.
#include <atomic>
#include <thread>

#include "support/contract.hpp"

using namespace std::chrono_literals;

namespace holdfast::test {

CONTRACT(AcquireAllGivesLeasesInTheOrderOfTheLocks) {
  client a = make_client(lock_options{.ttl = long_ttl});
  client b = make_client(lock_options{.ttl = long_ttl});
  {
    const auto all = acquire_all({a.mutex("z"), a.mutex("x"), a.mutex("y")}, patience);
    ASSERT_EQ(all.size(), 3U);
    EXPECT_EQ(all[0].name(), "z");
    EXPECT_EQ(all[1].name(), "x");
    EXPECT_EQ(all[2].name(), "y");
    for (const lease& one : all) {
      EXPECT_TRUE(one.held());
      EXPECT_EQ(b.status(one.name()).holder.value().token, one.token());
    }
  }
  EXPECT_TRUE(try_acquire_all({b.mutex("x"), b.mutex("y"), b.mutex("z")}, patience));
}

CONTRACT(AcquireAllIsAllOrNothing) {
  client a = make_client(lock_options{.ttl = long_ttl});
  client b = make_client(lock_options{.ttl = long_ttl});
  auto held = a.mutex("y").acquire();
  EXPECT_FALSE(try_acquire_all({b.mutex("x"), b.mutex("y"), b.mutex("z")}));
  EXPECT_FALSE(try_acquire_all({b.mutex("x"), b.mutex("y"), b.mutex("z")}, 50ms));
  for (const char* free : {"x", "z"})
    EXPECT_TRUE(a.mutex(free).try_acquire(patience)) << free << " was given back";
  try {
    static_cast<void>(acquire_all({b.mutex("x"), b.mutex("y")}, 20ms));
    ADD_FAILURE() << "y is held";
  } catch (const error& problem) {
    EXPECT_EQ(problem.code(), make_error_code(errc::timed_out));
    EXPECT_EQ(problem.holder().value().token, held.token()) << "who has it is told";
    EXPECT_EQ(std::string{problem.what()}.find("y: "), 0U) << problem.what();
  }
}

CONTRACT(AcquireAllWaitsWithoutHoldingWhatComesLater) {
  const auto seen = std::make_shared<recorder>();
  client a = make_client(lock_options{.ttl = long_ttl});
  client b = make_client(client_options{.lock = {.ttl = long_ttl}, .observer = seen});
  auto held = a.mutex("x").acquire();
  std::optional<std::vector<lease>> both;
  std::thread waiter{[&] { both = try_acquire_all({b.mutex("y"), b.mutex("x")}, patience); }};
  EXPECT_TRUE(seen->await(event::kind::waiting));
  EXPECT_TRUE(a.mutex("y").try_acquire(patience)) << "is not held by a waiter for x";
  EXPECT_TRUE(held.release());
  waiter.join();
  ASSERT_TRUE(both);
  EXPECT_EQ(both->size(), 2U);
}

CONTRACT(AcquireAllInOppositeOrdersNeverDeadlocks) {
  constexpr int rounds = 10;
  std::atomic<int> inside{0};
  const auto work = [&](std::vector<std::string> names) {
    client c = make_client(lock_options{.ttl = long_ttl});
    std::vector<mutex> locks;
    for (const auto& name : names)
      locks.push_back(c.mutex(name));
    for (int i = 0; i < rounds; ++i) {
      const auto all = acquire_all(locks, patience);
      EXPECT_EQ(++inside, 1);
      --inside;
    }
  };
  std::thread one{[&] { work({"x", "y", "z"}); }};
  std::thread other{[&] { work({"z", "y", "x"}); }};
  std::thread third{[&] { work({"y", "z"}); }};
  one.join();
  other.join();
  third.join();
}

CONTRACT(AcquireAllRefusesWhatMakesNoSense) {
  client a = make_client(lock_options{.ttl = long_ttl});
  client b = make_client(lock_options{.ttl = long_ttl});
  const auto refused = [](const std::vector<mutex>& locks) {
    return thrown_by([&] { static_cast<void>(acquire_all(locks, 10ms)); });
  };
  EXPECT_EQ(refused({}), errc::invalid_argument);
  EXPECT_EQ(refused({a.mutex("x"), a.mutex("y"), a.mutex("x")}), errc::invalid_argument);
  EXPECT_EQ(refused({a.mutex("x"), b.mutex("y")}), errc::invalid_argument);
  EXPECT_EQ(refused(std::vector<mutex>(acquired_together_max + 1, a.mutex("x"))),
            errc::invalid_argument);
  EXPECT_TRUE(a.mutex("x").try_acquire()) << "nothing was asked for";
}

CONTRACT(AcquireAllStops) {
  const auto seen = std::make_shared<recorder>();
  client a = make_client(lock_options{.ttl = long_ttl});
  client b = make_client(client_options{.lock = {.ttl = long_ttl}, .observer = seen});
  const lease held = a.mutex("y").acquire();
  std::stop_source stop;
  std::thread waiter{[&] {
    EXPECT_FALSE(try_acquire_all({b.mutex("x"), b.mutex("y")}, forever, stop.get_token()));
  }};
  EXPECT_TRUE(seen->await(event::kind::waiting));
  stop.request_stop();
  waiter.join();
  EXPECT_TRUE(a.mutex("x").try_acquire(patience));
}

CONTRACT_OVER_A_NETWORK(AcquireAllWaitsThroughAnOutage) {
  client c = make_client(client_options{.lock = {.ttl = kept_ttl},
                                        .operation_timeout = 300ms,
                                        .unreachable_limit = as_long_as_waiting});
  { const auto warm = acquire_all({c.mutex("x"), c.mutex("y")}); }
  store().reachable(false);
  std::optional<result<std::vector<lease>>> both;
  std::thread waiter{[&] {
    both.emplace(acquire_all_result({c.mutex("x"), c.mutex("y")}, patience));
  }};
  let_pass(800ms);  // an ask of the first round has failed by then
  store().reachable(true);
  waiter.join();
  ASSERT_TRUE(both->has_value()) << both->error().message;
  EXPECT_EQ((*both)->size(), 2U);
}

CONTRACT_OVER_A_NETWORK(AcquireAllAsksAnUnreachableStoreOnce) {
  client c = make_client(client_options{.operation_timeout = 300ms});
  { const auto warm = acquire_all({c.mutex("x"), c.mutex("y")}); }
  store().reachable(false);
  const errc code = thrown_by([&] {
    static_cast<void>(try_acquire_all({c.mutex("x"), c.mutex("y")}));
  });
  EXPECT_TRUE(code == errc::store_unreachable || code == errc::outcome_unknown);
}

}  // namespace holdfast::test
