// acquire() with and without a time of its own, thrown and returned, and who stood in the way.
#include <unistd.h>

#include <thread>

#include "support/contract.hpp"

using namespace std::chrono_literals;

namespace holdfast::test {

CONTRACT(AcquireWithATimeThrowsWhenItIsOver) {
  client a = make_client(lock_options{.ttl = long_ttl});
  client b = make_client();
  const lease held = a.mutex("orders").acquire(0s);
  const auto started = runtime::now();
  EXPECT_EQ(thrown_by([&] { (void)b.mutex("orders").acquire(0.2s); }), errc::timed_out);
  const auto waited = runtime::now() - started;
  EXPECT_GE(waited, 200ms);
  EXPECT_LT(waited, 20s) << "not the client's wait limit";
}

CONTRACT(AcquireWithATimeGetsALockThatComesFree) {
  client a = make_client(lock_options{.ttl = long_ttl});
  const auto seen = std::make_shared<recorder>();
  client b = make_client(client_options{.lock = {.ttl = long_ttl}, .observer = seen});
  lease held = a.mutex("orders").acquire();
  std::optional<lease> got;
  std::thread waiter{[&] { got = b.mutex("orders").acquire(patience); }};
  EXPECT_TRUE(seen->await(event::kind::waiting));
  EXPECT_TRUE(held.release());
  waiter.join();
  ASSERT_TRUE(got);
  EXPECT_TRUE(got->held());
}

CONTRACT(TimedOutErrorKnowsTheHolder) {
  client a = make_client(lock_options{.ttl = long_ttl, .label = "night\nly"});
  client b = make_client();
  const lease held = a.mutex("orders").acquire();
  try {
    (void)b.mutex("orders").acquire(100ms);
    FAIL() << "it is held";
  } catch (const error& e) {
    EXPECT_EQ(e.code(), errc::timed_out);
    ASSERT_TRUE(e.holder());
    EXPECT_EQ(e.holder()->token, held.token());
    EXPECT_EQ(e.holder()->pid, ::getpid());
    EXPECT_EQ(e.holder()->label, "night\nly") << "the bytes themselves";
    EXPECT_NE(std::string{e.what()}.find("night\\nly"), std::string::npos) << e.what();
  }
}

CONTRACT(AcquireResultReturnsWhatAcquireThrows) {
  const auto seen = std::make_shared<recorder>();
  client a = make_client(lock_options{.ttl = long_ttl, .label = "night\nly"});
  client b = make_client(client_options{.wait_limit = 100ms, .observer = seen});
  lease held = a.mutex("orders").acquire();
  const auto is_refused = [&](const result<lease>& got) {
    ASSERT_FALSE(got);
    EXPECT_EQ(got.error().code, errc::timed_out);
    ASSERT_TRUE(got.error().holder);
    EXPECT_EQ(got.error().holder->token, held.token());
  };
  is_refused(b.mutex("orders").acquire_result());
  is_refused(b.mutex("orders").acquire_result(0s));
  EXPECT_EQ(b.counters().failures, 2U) << "as of acquire()";
  EXPECT_TRUE(seen->await(event::kind::failed, 2));

  ASSERT_TRUE(held.release());
  const result<lease> got = b.mutex("orders").acquire_result(patience);
  ASSERT_TRUE(got) << got.error().message;
  EXPECT_TRUE(got->held());
}

CONTRACT(StoppedAcquireResultSaysSo) {
  client a = make_client(lock_options{.ttl = long_ttl});
  const auto seen = std::make_shared<recorder>();
  client b = make_client(client_options{.observer = seen});
  const lease held = a.mutex("orders").acquire();
  std::stop_source stop;
  errc returned{};
  errc thrown{};
  std::thread one{
      [&] { returned = b.mutex("orders").acquire_result(forever, stop.get_token()).error().code; }};
  std::thread other{[&] {
    thrown = thrown_by([&] { (void)b.mutex("orders").acquire(forever, stop.get_token()); });
  }};
  EXPECT_TRUE(seen->await(event::kind::waiting, 2));
  stop.request_stop();
  one.join();
  other.join();
  EXPECT_EQ(returned, errc::stopped);
  EXPECT_EQ(thrown, errc::stopped);
}

// Of the threads of one client one asks the store; the others learn from it.
CONTRACT(ThreadBehindAnotherOfItsClientLearnsTheHolder) {
  client a = make_client(lock_options{.ttl = long_ttl, .label = "night\nly"});
  const auto seen = std::make_shared<recorder>();
  client b = make_client(client_options{.lock = {.ttl = long_ttl}, .observer = seen});
  const lease held = a.mutex("orders").acquire();
  std::stop_source stop;
  std::thread asks{[&] { (void)b.mutex("orders").try_acquire(forever, stop.get_token()); }};
  EXPECT_TRUE(seen->await(event::kind::waiting));
  EXPECT_TRUE(eventually([&] {
    const auto refused = b.mutex("orders").acquire_result(20ms);
    return !refused && refused.error().code == errc::timed_out && refused.error().holder &&
           refused.error().holder->token == held.token();
  }));
  stop.request_stop();
  asks.join();
}

CONTRACT(HolderThatIsAThreadOfTheSameClientIsNotNamed) {
  client c = make_client(lock_options{.ttl = long_ttl});
  const lease held = c.mutex("orders").acquire();
  const auto refused = c.mutex("orders").acquire_result(20ms);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, errc::timed_out);
  EXPECT_FALSE(refused.error().holder);
  EXPECT_NE(refused.error().message.find("another thread of this client"), std::string::npos);
}

CONTRACT(AcquireResultThrowsNothingForMisuse) {
  client c = make_client();
  mutex orders = c.mutex("orders");
  const mutex elsewhere = std::move(orders);
  const auto is_refused = [](const result<lease>& got) {
    ASSERT_FALSE(got);
    EXPECT_EQ(got.error().code, errc::invalid_argument);
  };
  is_refused(orders.acquire_result());
  is_refused(orders.acquire_result(1s));
}

}  // namespace holdfast::test
