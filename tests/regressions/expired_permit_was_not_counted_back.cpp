// Expired permits of Redisson's semaphore are taken back a hundred at a time. One whose own attempt
// asked again, behind a hundred that had expired before it, was taken anew without having been
// counted back: there was one permit less for ever.
#include <gtest/gtest.h>

#include "scripts.hpp"
#include "support/proxied_redis.hpp"

using namespace std::chrono_literals;

namespace holdfast::test {
namespace {

class ExpiredPermit : public proxied_redis {
 protected:
  static constexpr int permits = 200;

  void SetUp() override {
    ASSERT_EQ(server.command({"SET", "slots", "0"}), "OK");
    for (int i = 0; i < permits - 1; ++i) {
      ASSERT_EQ(
          server.command({"ZADD", timeouts, std::to_string(i + 1), "gone" + std::to_string(i)}),
          "1");
    }
    // The last of them to have expired.
    ASSERT_EQ(server.command({"ZADD", timeouts, "100000", id}), "1");
  }
  [[nodiscard]] std::string run(const stores::redis::scripts::script& what,
                                std::vector<std::string> args) const {
    std::vector<std::string> words{"EVAL",   std::string{what.source}, "3", "slots",
                                   timeouts, "redisson_sc:{slots}"};
    words.insert(words.end(), args.begin(), args.end());
    return server.command(words);
  }
  [[nodiscard]] int untaken() const { return std::stoi(server.command({"GET", "slots"})); }
  [[nodiscard]] int taken() const { return std::stoi(server.command({"ZCARD", timeouts})); }

  const std::string id = std::string(32, 'a');
  const std::string timeouts = "{slots}:timeout";
};

TEST_F(ExpiredPermit, IsCountedBackBeforeItIsTakenAnew) {
  const auto got =
      run(stores::redis::scripts::redisson_permit_acquire, {id, "60000", "200", "PUBLISH"});
  EXPECT_EQ(got.substr(0, 1), "1");
  EXPECT_EQ(untaken() + taken(), permits);
}

TEST_F(ExpiredPermit, IsNotGivenBackAsOneThatWasHeld) {
  EXPECT_EQ(run(stores::redis::scripts::redisson_permit_release, {id, "PUBLISH"}), "0");
  EXPECT_EQ(untaken() + taken(), permits);
}

}  // namespace
}  // namespace holdfast::test
