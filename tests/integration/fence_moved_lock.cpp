// A lock moves from Redis to etcd, whose tokens are small, while the resource remembers large ones.
#include "support/built.hpp"

#if HOLDFAST_HAS_ETCD

#include <chrono>
#include <string>

#include <gtest/gtest.h>

#include <holdfast/holdfast.hpp>

#include "support/etcd_server.hpp"
#include "support/redis_server.hpp"

namespace holdfast::test {

TEST(FenceMovedLock, StartsAboveWhatTheFenceHasSeen) {
  const redis_server redis;
  client old_store{redis.url()};
  fence::gate resource;
  const auto left_behind = old_store.mutex("orders").acquire();
  ASSERT_TRUE(resource.accept(left_behind.token()));

  const etcd_server etcd;
  const std::string url = "etcd://" + etcd.endpoint().substr(std::string{"http://"}.size());
  {
    client as_it_comes{url};
    const auto lease = as_it_comes.mutex("orders").acquire();
    EXPECT_LT(lease.token(), left_behind.token());
    EXPECT_FALSE(resource.accept(lease.token())) << "and for ever so";
  }
  client moved{url + "?token_base=" + to_string(left_behind.token())};
  const auto lease = moved.mutex("orders").acquire();
  EXPECT_TRUE(resource.accept(lease.token()));
  EXPECT_FALSE(resource.accept(left_behind.token()));
  EXPECT_EQ(moved.status("orders").holder.value().token, lease.token());

  // And back: the clock in Redis's tokens has passed all of them.
  const auto now = std::chrono::duration_cast<std::chrono::microseconds>(
      std::chrono::system_clock::now().time_since_epoch());
  ASSERT_LT(lease.token().value(), static_cast<std::uint64_t>(now.count()));
  const auto returned = old_store.mutex("invoices").acquire();
  EXPECT_TRUE(resource.accept(returned.token()));
}

}  // namespace holdfast::test

#endif
