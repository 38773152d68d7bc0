// `holdfast run --at-least` keeps the lock when its command has ended well. A lock that was lost
// only then, or given up at --max-hold, was reported as lost while the command ran: exit 76.
// And the other way round: a lock that was lost while the command ran, unnoticed until its release,
// left the mark of --once, as if the command had been alone.
#include "cli/cli_test.hpp"

using namespace std::chrono_literals;

namespace holdfast::test {
namespace {

class FinishedCommand : public cli_test {
 protected:
  [[nodiscard]] std::string redis_cli() const { return "redis-cli -s " + server_.socket_path(); }
};

TEST_F(FinishedCommand, KeepsItsStatusWhenItsLockIsHeldForNoLonger) {
  const auto ended =
      run({"run", "backup", "--at-least", "1h", "--max-hold", "5s", "--", "sh", "-c", "exit 5"});
  EXPECT_EQ(ended.exit, exited(5)) << ended.err;
}

TEST_F(FinishedCommand, LeavesNoMarkIfItsLockWasLostUnnoticed) {
  const auto lost = run({"run", "backup", "--ttl", "60s", "--once", "monday", "--", "sh", "-c",
                         redis_cli() + " DEL backup"});
  EXPECT_EQ(lost.exit, exited(76)) << lost.err;
  EXPECT_TRUE(is_free("backup:once:monday"));
}

}  // namespace
}  // namespace holdfast::test
