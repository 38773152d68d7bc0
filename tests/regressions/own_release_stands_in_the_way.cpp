// unlock() sent its release by the script's hash to a server that did not know the script. Nobody
// waited for the answer, so the release was only tried again a moment later, and a try_acquire()
// right after unlock() found the lock held, by this very client.
#include <mutex>

#include <gtest/gtest.h>

#include <holdfast/holdfast.hpp>

#include "support/redis_server.hpp"

namespace holdfast::test {
namespace {

TEST(OwnRelease, OfAFreshClientIsDoneBeforeTheNextAsk) {
  redis_server server;
  for (int i = 0; i < 20; ++i) {
    static_cast<void>(server.command({"SCRIPT", "FLUSH"}));
    client fresh{server.url()};
    auto lock = fresh.mutex("a");
    { const std::scoped_lock guard{lock}; }
    ASSERT_TRUE(lock.try_acquire()) << "round " << i;
  }
}

TEST(OwnRelease, OfAForgottenScriptIsDoneBeforeTheNextAsk) {
  redis_server server;
  client one{server.url()};
  auto lock = one.mutex("a");
  for (int i = 0; i < 20; ++i) {
    auto lease = lock.try_acquire();
    ASSERT_TRUE(lease) << "round " << i;
    static_cast<void>(server.command({"SCRIPT", "FLUSH"}));
  }
}

}  // namespace
}  // namespace holdfast::test
