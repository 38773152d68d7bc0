// The fence inside PostgreSQL: transactions that overlap, at every isolation level, and the
// trigger, on a real server.
#include <future>

#include <gtest/gtest.h>

#include <holdfast/fence.hpp>

#include "support/postgres_server.hpp"
#include "support/process.hpp"

namespace holdfast::test {

namespace {

constexpr const char* overtaken = "LF001";
constexpr const char* not_admitted = "LF002";
constexpr const char* begin_again = "40001";

std::string admit(int token) {
  return "select holdfast.admit('row', " + std::to_string(token) + ")";
}
std::string confirm(int token) {
  return "select holdfast.confirm('row', " + std::to_string(token) + ")";
}

class FencePostgresql : public testing::Test {
 protected:
  static postgres_server& server() {
    static postgres_server one;
    return one;
  }
  FencePostgresql() {
    old.run(std::string{fence::postgresql_schema()});
    old.run("create table row (value text); insert into row values ('')");
  }
  // Runs it in `next` and returns when the server has it wait for another transaction.
  [[nodiscard]] std::future<std::string> blocked(const std::string& sql) {
    auto answer = std::async(std::launch::async, [this, sql] { return next.refusal(sql); });
    const std::string waits =
        "select 1 from pg_stat_activity where wait_event_type = 'Lock' and pid = " +
        std::to_string(next.server_pid());
    EXPECT_TRUE(eventually([&] { return old.run(waits) == "1"; }));
    return answer;
  }

  const std::string where = server().new_database();
  sql_session old{where};
  sql_session next{where};
};

TEST_F(FencePostgresql, LetsTheNewestHolderInAgainAndAgain) {
  EXPECT_EQ(old.refusal(admit(33)), "");
  EXPECT_EQ(old.refusal(admit(33)), "");
  EXPECT_EQ(old.refusal(confirm(33)), "");
  EXPECT_EQ(next.refusal(admit(34)), "");
  EXPECT_EQ(old.refusal(admit(33)), overtaken);
  EXPECT_EQ(old.refusal(confirm(33)), overtaken);
}

TEST_F(FencePostgresql, ConfirmsOnlyATokenThatWasAdmitted) {
  EXPECT_EQ(old.refusal(confirm(5)), not_admitted);
  ASSERT_EQ(old.refusal(admit(5)), "");
  EXPECT_EQ(old.refusal(confirm(6)), not_admitted);
}

TEST_F(FencePostgresql, AdmissionThatIsRolledBackEndsNobodysTurn) {
  ASSERT_EQ(old.refusal(admit(5)), "");
  next.run("begin");
  next.run(admit(6));
  next.run("rollback");
  EXPECT_EQ(old.refusal(confirm(5)), "");
}

TEST_F(FencePostgresql, WhatMakesNoSenseIsRefused) {
  for (const char* call : {"admit('row', 0)", "admit('row', -1)", "admit('row', null)",
                           "admit('row', 9007199254740992)", "admit('', 5)", "admit(null, 5)",
                           "admit(repeat('x', 513), 5)", "confirm('row', 0)", "confirm(null, 5)"}) {
    EXPECT_EQ(old.refusal(std::string{"select holdfast."} + call), "22023") << call;
  }
}

TEST_F(FencePostgresql, InstallingItAgainKeepsWhatWasAdmitted) {
  ASSERT_EQ(old.refusal(admit(5)), "");
  old.run(std::string{fence::postgresql_schema()});
  EXPECT_EQ(old.refusal(admit(4)), overtaken);
}

// From the admission to the commit nobody else comes in, so what was read is what is overwritten.
TEST_F(FencePostgresql, NextHolderWaitsForTheTransactionOfTheOldOneAndSeesItsWrite) {
  old.run("begin");
  old.run(admit(1));
  auto waiting = blocked("begin; " + admit(2));
  old.run("update row set value = value || 'A'");
  old.run("commit");
  ASSERT_EQ(waiting.get(), "");
  EXPECT_EQ(next.run("select value from row"), "A");
  next.run("update row set value = value || 'B'");
  next.run("commit");
  EXPECT_EQ(old.refusal(admit(1)), overtaken);
  EXPECT_EQ(old.run("select value from row"), "AB");
}

// A holder that stays away inside its transaction keeps the others out only for as long as the
// server lets it.
TEST_F(FencePostgresql, TransactionOfAPausedHolderEndsByTheServersTimeout) {
  old.run("set idle_in_transaction_session_timeout = '50ms'");
  old.run("begin");
  old.run(admit(1));
  old.run("update row set value = 'A'");
  EXPECT_EQ(next.refusal(admit(2)), "");
  EXPECT_EQ(next.run("select value from row"), "");
  EXPECT_ANY_THROW(old.run("commit"));
  EXPECT_EQ(next.run("select value from row"), "");
}

// With a snapshot that is older than the old holder's write, the next one would read stale.
class FencePostgresqlAt : public FencePostgresql,
                          public testing::WithParamInterface<const char*> {};

TEST_P(FencePostgresqlAt, HolderWithAnOlderSnapshotBeginsAgain) {
  old.run(admit(1));
  old.run("begin");
  old.run(admit(1));  // once more: this too must be seen by those that wait
  auto waiting = blocked(std::string{"begin isolation level "} + GetParam() + "; " + admit(2));
  old.run("update row set value = 'A'");
  old.run("commit");
  EXPECT_EQ(waiting.get(), begin_again);
  next.run("rollback");
  next.run(std::string{"begin isolation level "} + GetParam());
  next.run(admit(2));
  EXPECT_EQ(next.run("select value from row"), "A");
  next.run("commit");
}

TEST_P(FencePostgresqlAt, OldHoldersWriteIsRefused) {
  const std::string begin = std::string{"begin isolation level "} + GetParam();
  old.run(begin);
  old.run(admit(1));
  ASSERT_EQ(old.run("select value from row"), "");
  old.run("commit");
  next.run(begin);
  next.run(admit(2));
  next.run("update row set value = 'B'");
  next.run("commit");
  old.run(begin);
  EXPECT_EQ(old.refusal(confirm(1)), overtaken);
  EXPECT_EQ(old.refusal("update row set value = 'A'"), "25P02") << "the transaction is aborted";
  old.run("rollback");
  EXPECT_EQ(next.run("select value from row"), "B");
}

// The holder whose snapshot is older than its successor's admission must not write either.
TEST_P(FencePostgresqlAt, ConfirmationWithAnOlderSnapshotIsRefused) {
  old.run(admit(1));
  old.run(std::string{"begin isolation level "} + GetParam());
  ASSERT_EQ(old.run("select value from row"), "");
  ASSERT_EQ(next.refusal(admit(2)), "");
  EXPECT_NE(old.refusal(confirm(1)), "");
  old.run("rollback");
}

INSTANTIATE_TEST_SUITE_P(Level, FencePostgresqlAt,
                         testing::Values("repeatable read", "serializable"), [](const auto& of) {
                           return std::string{of.param[0] == 's' ? "Serializable"
                                                                 : "RepeatableRead"};
                         });

TEST_F(FencePostgresql, TriggerRefusesEveryWriteWithoutAToken) {
  old.run(
      "create trigger fenced before insert or update or delete or truncate on row "
      "for each statement execute function holdfast.fenced('row')");
  const std::vector<std::string> writes{"insert into row values ('x')",
                                        "update row set value = 'x'", "delete from row",
                                        "truncate row"};
  for (const auto& write : writes)
    EXPECT_EQ(old.refusal(write), not_admitted) << write;
  ASSERT_EQ(old.refusal(admit(5)), "");
  for (const auto& write : writes)
    EXPECT_EQ(old.refusal(write), not_admitted) << "that was another transaction: " << write;
  for (const auto& shown : {admit(5), confirm(5)}) {
    old.run("begin");
    old.run(shown);
    for (const auto& write : writes)
      EXPECT_EQ(old.refusal(write), "") << write;
    old.run("rollback");
  }
}

TEST_F(FencePostgresql, TriggerKnowsTheResourceOfEachRow) {
  old.run("create table accounts (id int, sum int); insert into accounts values (1, 0), (2, 0)");
  old.run(
      "create trigger fenced before insert or update or delete on accounts "
      "for each row execute function holdfast.fenced('accounts/', 'id')");
  const auto with_first = [this](const std::string& write) {
    old.run("begin");
    old.run("select holdfast.admit('accounts/1', 5)");
    std::string refused = old.refusal(write);
    old.run("rollback");
    return refused;
  };
  EXPECT_EQ(with_first("update accounts set sum = 1 where id = 1"), "");
  EXPECT_EQ(with_first("insert into accounts values (1, 9)"), "");
  EXPECT_EQ(with_first("delete from accounts where id = 1"), "");
  EXPECT_EQ(with_first("update accounts set sum = 1 where id = 2"), not_admitted);
  EXPECT_EQ(with_first("update accounts set id = 2 where id = 1"), not_admitted);
  EXPECT_EQ(with_first("update accounts set id = 1 where id = 2"), not_admitted);
  EXPECT_EQ(with_first("insert into accounts values (3, 9)"), not_admitted);
  EXPECT_EQ(with_first("delete from accounts"), not_admitted);
  EXPECT_EQ(with_first("insert into accounts values (null, 9)"), not_admitted);
}

TEST_F(FencePostgresql, TriggerThatIsDeclaredWrongSaysSo) {
  old.run(
      "create trigger fenced before update on row for each row "
      "execute function holdfast.fenced('row')");
  EXPECT_EQ(old.refusal("update row set value = 'x'"), "22023");
}

TEST_F(FencePostgresql, ApplicationNeedsTheUseOfTheSchemaAndCannotTurnTheFenceBack) {
  // Roles are the cluster's, and others of this suite may run in it.
  const std::string role = "app_" + old.run("select current_database()");
  old.run("create role " + role + "; grant usage on schema holdfast to " + role);
  old.run("set role " + role);
  EXPECT_EQ(old.refusal(admit(5)), "");
  EXPECT_EQ(old.refusal(confirm(5)), "");
  for (const char* write : {"update holdfast.fence set token = 1", "delete from holdfast.fence",
                            "truncate holdfast.fence"}) {
    EXPECT_EQ(old.refusal(write), "42501") << write;
  }
}

}  // namespace

}  // namespace holdfast::test
