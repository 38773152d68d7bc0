// A holder is asked to give the lock back: nobody else has it before it does, or its TTL is over.
#include "support/contract.hpp"

using namespace std::chrono_literals;

namespace holdfast::test {

namespace {

// Quorums cannot ask, and sessions do not.
bool asks(const client& c) {
  const auto kind = c.guarantees().storage;
  return kind == guarantees::storage_kind::process || kind == guarantees::storage_kind::single;
}

}  // namespace

CONTRACT(RecalledHolderStopsAndTheLockStaysItsOwnUntilItGivesItBack) {
  client a = make_client(lock_options{.ttl = kept_ttl});
  client b = make_client(lock_options{.ttl = long_ttl});
  lease held = a.mutex("orders").acquire();
  watched_token lost{held.lost()};
  if (!asks(b)) {
    EXPECT_EQ(thrown_by([&] { b.recall_lock("orders", held.token()); }), errc::unsupported);
    return;
  }
  const auto left = b.recall_lock("orders", held.token());
  EXPECT_GT(left, 0ms);
  EXPECT_LE(left, kept_ttl);
  ASSERT_TRUE(lost.wait());
  EXPECT_EQ(held.why_lost(), loss::recalled);
  EXPECT_FALSE(held.renew());
  // Says that the lease was lost, and gives back what is left of it.
  EXPECT_EQ(held.release().error().code, errc::lease_lost);
  EXPECT_TRUE(b.mutex("orders").try_acquire(patience));
}

CONTRACT(RecallOfAnotherTokenChangesNothing) {
  client a = make_client(lock_options{.ttl = long_ttl});
  client b = make_client();
  if (!asks(b)) return;
  lease held = a.mutex("orders").acquire();
  const fencing_token wrong{held.token().value() + 1};
  EXPECT_EQ(thrown_by([&] { b.recall_lock("orders", wrong); }), errc::not_held);
  EXPECT_EQ(thrown_by([&] { b.recall_lock("free", held.token()); }), errc::not_held);
  EXPECT_TRUE(held.renew());
  EXPECT_TRUE(held.release());
}

CONTRACT(RecallTwiceIsRecallOnce) {
  client a = make_client(lock_options{.ttl = long_ttl, .renew = false});
  client b = make_client();
  if (!asks(b)) return;
  lease held = a.mutex("orders").acquire();
  const auto first = b.recall_lock("orders", held.token());
  EXPECT_LE(b.recall_lock("orders", held.token()), first);
  // It is held until its holder hears.
  EXPECT_TRUE(held.held());
  EXPECT_FALSE(b.mutex("orders").try_acquire());
  EXPECT_FALSE(held.renew());
  EXPECT_EQ(held.why_lost(), loss::recalled);
}

CONTRACT_OF_SHARES(RecalledShareIsGivenBackAndTheOthersStay) {
  client a = make_client(lock_options{.ttl = kept_ttl});
  client b = make_client(lock_options{.ttl = long_ttl});
  if (!asks(b)) return;
  lease held = a.semaphore("encoders", 2).acquire();
  const lease stays = b.semaphore("encoders", 2).acquire();
  watched_token lost{held.lost()};
  EXPECT_LE(b.recall_lock("encoders", held.token()), kept_ttl);
  ASSERT_TRUE(lost.wait());
  EXPECT_EQ(held.why_lost(), loss::recalled);
  EXPECT_FALSE(held.release());
  EXPECT_TRUE(b.semaphore("encoders", 2).try_acquire(patience));
  EXPECT_TRUE(stays.held());
}

}  // namespace holdfast::test
