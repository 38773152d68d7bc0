// Scenario: a holder is paused beyond its TTL, and goes on. Whether its update, or its successor's,
// is lost: without a fence, with one that is told of writes only, and with one that is told before
// the first read. The row is in a real Redis, PostgreSQL and etcd.
#include <sys/wait.h>

#include <optional>
#include <string>
#include <string_view>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <holdfast/fence.hpp>

#include "support/built.hpp"
#include "support/etcd_server.hpp"
#include "support/postgres_server.hpp"
#include "support/process.hpp"
#include "support/redis_server.hpp"

namespace holdfast::test {

namespace {

class updater {
 public:
  updater(const redis_server& locks, const std::string& row, const std::string& how,
          const std::string& name)
      : child_{process_options{.args = {HOLDFAST_TEST_PROGRAMS "/updater", locks.url(), "row",
                                        "300", row, how, name}}} {
    if (!child_.wait_for_output("held ")) {
      throw std::runtime_error{"updater: " + child_.stdout_text() + child_.stderr_text()};
    }
    lines_ = 1;
  }

  // What it answers to "read" or "write".
  std::string tell(const std::string& step) {
    child_.write_stdin(step + "\n");
    ++lines_;
    std::string said;
    (void)eventually([&] {
      (void)child_.wait_for_output("\n", std::chrono::nanoseconds{0});
      return nth_line(said);
    });
    return said;
  }
  void pause() {
    child_.signal(SIGSTOP);
    siginfo_t stopped{};
    const auto id = static_cast<id_t>(child_.pid());
    ASSERT_EQ(::waitid(P_PID, id, &stopped, WSTOPPED | WNOWAIT), 0);
  }
  void resume() { child_.signal(SIGCONT); }

 private:
  bool nth_line(std::string& line) {
    std::string_view rest{child_.stdout_text()};
    for (int i = 0;; ++i) {
      const auto end = rest.find('\n');
      if (end == std::string_view::npos) return false;
      line = rest.substr(0, end);
      if (i == lines_ - 1) return true;
      rest.remove_prefix(end + 1);
    }
  }

  child_process child_;
  int lines_ = 0;
};

class FenceLostUpdate : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (GetParam() == std::string_view{"Redis"}) {
      redis.emplace();
      row = redis->url();
    } else if (GetParam() == std::string_view{"etcd"}) {
      static etcd_server shared;
      etcd = &shared;
      row = etcd->endpoint();
      ASSERT_EQ(etcd->run("del --prefix ''").exit, exit_status{});
    } else {
      static postgres_server postgresql;
      row = postgresql.new_database();
      database.emplace(row);
      database->run(std::string{fence::postgresql_schema()});
      database->run("create table row (value text); insert into row values ('')");
    }
  }
  [[nodiscard]] std::string value() {
    if (redis) return redis->command({"GET", "row"});
    if (database) return database->run("select value from row");
    const std::string line = etcd->get("row");
    return line.substr(0, line.find('\n'));
  }

  redis_server locks;
  std::optional<redis_server> redis;
  std::optional<sql_session> database;
  etcd_server* etcd = nullptr;
  std::string row;
};

// The holder reads, and is paused; the next one has the lock once the TTL is over.
TEST_P(FenceLostUpdate, WithoutAFenceThePausedHolderOverwritesTheNextOne) {
  updater old{locks, row, "none", "A"};
  ASSERT_EQ(old.tell("read"), "read []");
  old.pause();
  updater next{locks, row, "none", "B"};
  ASSERT_EQ(next.tell("read"), "read []");
  ASSERT_EQ(next.tell("write"), "written");
  old.resume();
  EXPECT_EQ(old.tell("write"), "written");
  EXPECT_EQ(value(), "A") << "B was told that its update is written";
}

TEST_P(FenceLostUpdate, FenceRefusesThePausedHoldersWrite) {
  updater old{locks, row, "all", "A"};
  ASSERT_EQ(old.tell("read"), "read []");
  old.pause();
  updater next{locks, row, "all", "B"};
  ASSERT_EQ(next.tell("read"), "read []");
  ASSERT_EQ(next.tell("write"), "written");
  old.resume();
  EXPECT_THAT(old.tell("write"), testing::StartsWith("refused "));
  old.tell("read");  // which is no way back in
  EXPECT_THAT(old.tell("write"), testing::StartsWith("refused "));
  EXPECT_EQ(value(), "B");
}

// The next holder has read when the old one goes on: a fence that does not know of it lets the old
// one write, and the next one overwrite that from what it read.
TEST_P(FenceLostUpdate, FenceThatIsToldOfWritesOnlyLosesTheOldHoldersUpdate) {
  updater old{locks, row, "writes", "A"};
  ASSERT_EQ(old.tell("read"), "read []");
  old.pause();
  updater next{locks, row, "writes", "B"};
  ASSERT_EQ(next.tell("read"), "read []");
  old.resume();
  EXPECT_EQ(old.tell("write"), "written");
  EXPECT_EQ(next.tell("write"), "written");
  EXPECT_EQ(value(), "B") << "A was told that its update is written";
}

TEST_P(FenceLostUpdate, FenceThatIsToldBeforeTheFirstReadLosesNone) {
  updater old{locks, row, "all", "A"};
  ASSERT_EQ(old.tell("read"), "read []");
  old.pause();
  updater next{locks, row, "all", "B"};
  ASSERT_EQ(next.tell("read"), "read []");
  old.resume();
  EXPECT_THAT(old.tell("write"), testing::StartsWith("refused "));
  EXPECT_EQ(next.tell("write"), "written");
  EXPECT_EQ(value(), "B");
  EXPECT_EQ(next.tell("read"), "read [B]") << "the newest holder goes on as it likes";
  EXPECT_EQ(next.tell("write"), "written");
  EXPECT_EQ(value(), "BB");
}

INSTANTIATE_TEST_SUITE_P(In, FenceLostUpdate, testing::Values("Redis", "PostgreSQL", "etcd"),
                         [](const auto& of) { return std::string{of.param}; });

}  // namespace

}  // namespace holdfast::test
