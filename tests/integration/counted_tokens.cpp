// Tokens that a mutex counts together with clients of other kinds, on a key of theirs.
#include <atomic>
#include <thread>

#include "support/proxied_redis.hpp"

using namespace std::chrono_literals;

namespace holdfast::test {

namespace {

class CountedTokens : public proxied_redis {
 protected:
  [[nodiscard]] client ours() { return direct({.lock = {.ttl = 60s}}); }
  // As another client's acquire script does for its own holder.
  [[nodiscard]] std::string counted_elsewhere() const { return server.command({"INCR", "fence"}); }
};

TEST_F(CountedTokens, GoOnFromWhatOthersCounted) {
  client c = ours();
  EXPECT_EQ(counted_elsewhere(), "1");
  {
    auto lease = c.mutex("orders").acquire();
    EXPECT_EQ(lease.counted_token("fence").value(), fencing_token{2});
    EXPECT_GT(lease.token().value(), 1'000'000'000'000'000U) << "the lease's own is another";
  }
  EXPECT_EQ(counted_elsewhere(), "3");
  auto lease = c.mutex("orders").acquire();
  EXPECT_EQ(lease.counted_token("fence").value(), fencing_token{4});
}

TEST_F(CountedTokens, RiseAlsoWhenTheLockIsHandedOnInTheProcess) {
  client c = ours();
  constexpr int rounds = 50;
  std::atomic<std::uint64_t> last{0};
  const auto work = [&] {
    for (int i = 0; i < rounds; ++i) {
      auto lease = c.mutex("orders").acquire(patience);
      const auto token = lease.counted_token("fence").value().value();
      EXPECT_LT(last.exchange(token), token);
    }
  };
  std::thread one{work};
  std::thread other{work};
  one.join();
  other.join();
  EXPECT_EQ(server.command({"GET", "fence"}), std::to_string(2 * rounds));
}

TEST_F(CountedTokens, AreForTheHolderOnly) {
  client a = ours();
  client b = ours();
  auto lost = a.mutex("orders").acquire();
  b.break_lock("orders", lost.token());
  EXPECT_EQ(lost.counted_token("fence").error().code, errc::lease_lost) << "nobody has it";
  const auto next = b.mutex("orders").acquire();
  EXPECT_EQ(lost.counted_token("fence").error().code, errc::lease_lost) << "another has it";
  EXPECT_FALSE(exists("fence")) << "nothing was counted";
  auto given_back = a.mutex("other").acquire();
  EXPECT_TRUE(given_back.release());
  EXPECT_EQ(given_back.counted_token("fence").error().code, errc::lease_lost);
}

TEST_F(CountedTokens, NeedACounterAndALockOfOneHolder) {
  client c = ours();
  auto lease = c.mutex("orders").acquire();
  EXPECT_EQ(lease.counted_token("").error().code, errc::invalid_argument);
  EXPECT_EQ(lease.counted_token("holdfast:{x}").error().code, errc::invalid_argument);
  EXPECT_EQ(server.command({"SET", "text", "abc"}), "OK");
  EXPECT_FALSE(lease.counted_token("text")) << "is not a number";
  EXPECT_TRUE(lease.held());

  auto reads = c.shared_mutex("config").acquire_shared();
  EXPECT_EQ(reads.counted_token("fence").error().code, errc::unsupported);
  redisson::rlock java{c, "java"};
  EXPECT_EQ(java.acquire().counted_token("fence").error().code, errc::unsupported);
  client inside{"memory:counted tokens"};
  EXPECT_EQ(inside.mutex("orders").acquire().counted_token("fence").error().code,
            errc::unsupported);
}

TEST_F(CountedTokens, PrefixIsPartOfTheKey) {
  client c{server.url() + "?prefix=app:"};
  EXPECT_EQ(c.mutex("orders").acquire().counted_token("fence").value(), fencing_token{1});
  EXPECT_EQ(server.command({"GET", "app:fence"}), "1");
}

}  // namespace
}  // namespace holdfast::test
