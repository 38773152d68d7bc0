// Tokens that start higher than the store's own, on a store inside the process, beside a client
// that sees the store's own.
#include "stores/token_base.hpp"

#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include <gtest/gtest.h>

#include <holdfast/holdfast.hpp>

#include "client/make_client.hpp"
#include "stores/memory/memory_store.hpp"
#include "support/open_client.hpp"
#include "support/process.hpp"

using namespace std::chrono_literals;

namespace holdfast::test {

namespace {

constexpr std::uint64_t base = 2'000'000'000'000'000;

class TokenBase : public testing::Test {
 protected:
  [[nodiscard]] client with_base(client_options options = {}) const {
    return detail::make_client(
        stores::with_token_base(stores::memory::make_memory_store(name_), base),
        std::move(options));
  }
  [[nodiscard]] client without() const { return client{"memory:" + name_}; }

 private:
  const std::string name_ =
      std::string{"base-"} + testing::UnitTest::GetInstance()->current_test_info()->name();
};

TEST_F(TokenBase, IsAddedToEveryGrant) {
  client moved = with_base();
  client plain = without();
  const auto own = plain.mutex("orders").acquire().token();
  auto lease = moved.mutex("orders").acquire();
  EXPECT_GT(lease.token().value(), base + own.value());
  EXPECT_EQ(plain.status("orders").holder->token.value(), lease.token().value() - base);
  EXPECT_EQ(moved.status("orders").holder->token, lease.token());
  EXPECT_EQ(moved.list("*").at(0).holder->token, lease.token());
}

TEST_F(TokenBase, IsAddedToAGrantThatWasWaitedFor) {
  client moved = with_base();
  client plain = without();
  auto held = plain.mutex("orders").acquire();
  const auto own = held.token();
  std::thread releaser{[&] {
    EXPECT_TRUE(eventually([&] { return plain.status("orders").waiting == 1; }));
    EXPECT_TRUE(held.release());
  }};
  auto lease = moved.mutex("orders").try_acquire(patience);
  releaser.join();
  ASSERT_TRUE(lease);
  EXPECT_GT(lease->token().value(), base + own.value());
}

TEST_F(TokenBase, HandOverInTheProcessGoesOnCounting) {
  client moved = with_base();
  std::uint64_t last = base;
  std::mutex in_turn;
  const auto work = [&] {
    for (int i = 0; i < 50; ++i) {
      auto lease = moved.mutex("orders").acquire(patience);
      const std::lock_guard guard{in_turn};
      EXPECT_GT(lease.token().value(), last);
      last = lease.token().value();
    }
  };
  std::thread one{work};
  std::thread other{work};
  one.join();
  other.join();
}

TEST_F(TokenBase, LeaseIsRenewedAndAdoptedByItsToken) {
  client moved = with_base({.lock = {.ttl = 300ms}});
  auto lease = moved.mutex("orders").acquire();
  EXPECT_TRUE(lease.renew());
  EXPECT_TRUE(eventually([&] { return moved.counters().renewals > 1; })) << "in the background";
  EXPECT_TRUE(lease.held());
  const auto token = lease.token();
  const lease_ticket ticket = lease.detach();
  EXPECT_EQ(ticket.token, token);
  auto adopted = moved.mutex("orders").adopt(ticket);
  EXPECT_EQ(adopted.token(), token);
  EXPECT_TRUE(adopted.release());
}

TEST_F(TokenBase, TokensOfTheStoreItselfOpenNothing) {
  client moved = with_base();
  auto lease = moved.mutex("orders").acquire();
  const fencing_token own{lease.token().value() - base};
  std::string said;
  EXPECT_EQ(thrown_by([&] { moved.break_lock("orders", own); }, &said), errc::not_held);
  EXPECT_NE(said.find("not held with token " + to_string(own)), std::string::npos) << said;
  EXPECT_TRUE(lease.held());
  moved.break_lock("orders", lease.token());
  EXPECT_FALSE(lease.renew());
}

TEST_F(TokenBase, NoneIsTheStoreItself) {
  auto store = stores::memory::make_memory_store("none");
  const auto* const itself = store.get();
  EXPECT_EQ(stores::with_token_base(std::move(store), 0).get(), itself);
}

}  // namespace

}  // namespace holdfast::test
