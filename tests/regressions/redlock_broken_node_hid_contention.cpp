// With one of three nodes down, the first of the others to answer "busy" ended the vote, and the
// last one, not heard yet, was counted as broken, too: a lock that somebody held was reported as a
// store out of reach, and waiting for it failed. Found by the simulator.
#include <gtest/gtest.h>

#include <holdfast/holdfast.hpp>

#include "support/redlock_nodes.hpp"

namespace holdfast::test {
namespace {

TEST(RedlockContention, IsNoErrorThoughANodeIsDown) {
  redlock_nodes set{3};
  client one{set.url()};
  client other{set.url()};
  set[2].kill9();
  const lease held = one.mutex("orders").acquire();
  for (int i = 0; i < 20; ++i)
    ASSERT_FALSE(other.mutex("orders").try_acquire()) << "round " << i;
}

}  // namespace
}  // namespace holdfast::test
