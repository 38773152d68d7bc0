// status() shows who waits.
#include <unistd.h>

#include <future>

#include "support/contract.hpp"

using namespace std::chrono_literals;

namespace holdfast::test {

namespace {

void expect_in_order(const std::vector<waiter>& line, const std::vector<std::string>& labels) {
  ASSERT_EQ(line.size(), labels.size());
  for (std::size_t i = 0; i < line.size(); ++i) {
    EXPECT_EQ(line[i].label, labels[i]);
    EXPECT_FALSE(line[i].host.empty());
    EXPECT_EQ(line[i].pid, ::getpid());
    EXPECT_LT(std::chrono::abs(std::chrono::system_clock::now() - line[i].since), 1min);
    EXPECT_LE(line[i == 0 ? 0 : i - 1].since, line[i].since);
  }
}

}  // namespace

CONTRACT(StatusShowsWhoWaits) {
  client holder = make_client(lock_options{.ttl = long_ttl});
  client first = make_client(lock_options{.ttl = long_ttl, .label = "first; in\nline"});
  client second = make_client(lock_options{.ttl = long_ttl, .label = "second"});
  client looks = make_client();
  lease held = holder.mutex("orders").acquire();
  EXPECT_EQ(looks.status("orders").waiting, 0U);

  const auto wait = [](client& c) {
    return std::async(std::launch::async, [&c] { return c.mutex("orders").try_acquire(patience); });
  };
  const auto waiting = [&](std::size_t count) {
    return eventually([&] { return looks.status("orders").waiting == count; });
  };
  auto one = wait(first);
  ASSERT_TRUE(waiting(1));
  auto two = wait(second);
  ASSERT_TRUE(waiting(2));

  expect_in_order(looks.status("orders").waiters, {"first; in\nline", "second"});
  const auto listed = looks.list("ord*");
  ASSERT_EQ(listed.size(), 1U);
  EXPECT_EQ(listed[0].waiting, 2U);

  EXPECT_TRUE(held.release());
  EXPECT_TRUE(one.get());
  EXPECT_TRUE(two.get());
  EXPECT_TRUE(eventually([&] { return looks.status("orders").waiting == 0; }));
}

}  // namespace holdfast::test
