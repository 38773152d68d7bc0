// A renewal compared the owner but not the token. A holder whose key was deleted, taken by another
// and made anew by its own late ask went on as if nothing had happened. And a lease that had come
// from another thread could not be adopted: its token is not the first of its block.
#include <future>

#include "support/proxied_redis.hpp"

using namespace std::chrono_literals;

namespace holdfast::test {

class RenewalToken : public proxied_redis {
 protected:
  // The lease of a thread that got it from another thread, with a later token of the same block.
  [[nodiscard]] std::optional<lease> handed(client& c) {
    for (int round = 0; round < 20; ++round) {
      // Tokens for other threads are reserved by those who see them wait.
      lease blocks = c.mutex("orders").acquire();
      auto gives = std::async(std::launch::async, [&] {
        const lease held = c.mutex("orders").acquire();
        return held.token();
      });
      EXPECT_TRUE(eventually([&] { return c.counters().waiting_now == 1; }));
      auto takes = std::async(std::launch::async, [&] { return c.mutex("orders").acquire(); });
      EXPECT_TRUE(eventually([&] { return c.counters().waiting_now == 2; }));
      EXPECT_TRUE(blocks.release());
      first = gives.get();
      std::optional<lease> got = takes.get();
      // Unless that took so long that the lock went by way of the store.
      if (value().find(";token=" + to_string(first) + ";block=64;") != std::string::npos)
        return got;
    }
    ADD_FAILURE() << "the lease never went from thread to thread: nothing was shown";
    return std::nullopt;
  }
  [[nodiscard]] std::string value() const { return server.command({"GET", "orders"}); }

  fencing_token first;
};

TEST_F(RenewalToken, HolderWhoseLockWasGrantedAnewIsToldLost) {
  client c = direct({.lock = {.ttl = 60s}});
  lease held = c.mutex("orders").acquire();
  auto text = value();
  const auto token = ";token=" + to_string(held.token()) + ";";
  const auto at = text.find(token);
  ASSERT_NE(at, std::string::npos);
  // As the holder's own late ask would write it, after others have had the lock.
  text.replace(at, token.size(), ";token=" + std::to_string(held.token().value() + 1000) + ";");
  ASSERT_EQ(server.command({"SET", "orders", text, "PX", "60000"}), "OK");
  const auto said = held.renew();
  ASSERT_FALSE(said);
  EXPECT_EQ(said.error().code, errc::lease_lost);
  EXPECT_FALSE(held.held());
}

TEST_F(RenewalToken, LeaseFromAnotherThreadIsRenewedAndAdopted) {
  client c = direct({.lock = {.ttl = 60s}});
  auto held = handed(c);
  ASSERT_TRUE(held);
  ASSERT_GT(held->token(), first);
  EXPECT_TRUE(held->renew());
  const auto token = held->token();
  const auto ticket = held->detach();
  client adopter = direct();
  lease adopted = adopter.mutex("orders").adopt(ticket);
  EXPECT_EQ(adopted.token(), token);
  EXPECT_TRUE(adopted.renew());
  EXPECT_TRUE(adopted.release());
  EXPECT_FALSE(exists("orders"));
}

// Without a token in the ticket, the adopter must not get one that another thread has used.
TEST_F(RenewalToken, AdoptingByOwnerAloneRepeatsNoToken) {
  client c = direct({.lock = {.ttl = 60s}});
  auto held = handed(c);
  ASSERT_TRUE(held);
  const auto token = held->token();
  auto ticket = held->detach();
  ticket.token = {};
  client adopter = direct();
  lease adopted = adopter.mutex("orders").adopt(ticket);
  EXPECT_GE(adopted.token(), token);
  EXPECT_TRUE(adopted.renew());
  const auto last = adopted.token();
  EXPECT_TRUE(adopted.release());
  EXPECT_GT(adopter.mutex("orders").acquire().token(), last);
}

TEST_F(RenewalToken, TicketOfAnotherGrantIsRefused) {
  client c = direct({.lock = {.ttl = 60s}});
  auto ticket = c.mutex("orders").acquire().detach();
  ticket.token = fencing_token{ticket.token.value() + 1};
  EXPECT_EQ(thrown_by([&] { (void)c.mutex("orders").adopt(ticket); }), errc::lease_lost);
}

}  // namespace holdfast::test
