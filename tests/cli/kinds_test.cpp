// `holdfast run` on locks that several may hold.
#include <csignal>

#include <holdfast/client.hpp>

#include "cli_test.hpp"
#include "support/watch.hpp"

namespace holdfast::test {
namespace {

class CliKinds : public cli_test {
 protected:
  // A command that says when it runs, and runs until its input ends.
  [[nodiscard]] process_options held(std::vector<std::string> options) const {
    std::vector<std::string> args{"run", "a"};
    args.insert(args.end(), options.begin(), options.end());
    args.insert(args.end(), {"--", "sh", "-c", "echo ready $$ go; read line; true"});
    return holdfast(args);
  }
  [[nodiscard]] run_result tried(std::vector<std::string> options) const {
    std::vector<std::string> args{"run", "a", "--wait", "0"};
    args.insert(args.end(), options.begin(), options.end());
    args.insert(args.end(), {"--", "echo", "ran"});
    return run(args);
  }
  static void end(child_process& one) {
    one.close_stdin();
    EXPECT_EQ(one.wait_exit(), exited(0)) << one.stderr_text();
  }
};

TEST_F(CliKinds, ReadersRunTogetherAndAWriterAlone) {
  child_process reader{held({"--shared"})};
  ASSERT_FALSE(ready_numbers(reader).empty()) << reader.stderr_text();
  EXPECT_EQ(tried({"--shared"}).out, "ran\n");
  EXPECT_EQ(tried({"--writer"}).exit, exited(75));
  end(reader);
  child_process writer{held({"--writer"})};
  ASSERT_FALSE(ready_numbers(writer).empty()) << writer.stderr_text();
  EXPECT_EQ(tried({"--shared"}).exit, exited(75));
  EXPECT_EQ(tried({"--writer"}).exit, exited(75));
  end(writer);
  EXPECT_TRUE(is_free("a"));
}

TEST_F(CliKinds, SoManyRunAtATime) {
  child_process one{held({"--permits", "1/3"})};
  child_process two{held({"--permits", "2/3"})};
  ASSERT_FALSE(ready_numbers(one).empty()) << one.stderr_text();
  ASSERT_FALSE(ready_numbers(two).empty()) << two.stderr_text();
  EXPECT_EQ(tried({"--permits", "1/3"}).exit, exited(75));
  end(two);
  EXPECT_EQ(tried({"--permits", "2/3"}).out, "ran\n");
  EXPECT_EQ(tried({"--permits", "3/3"}).exit, exited(75));
  const auto others = tried({"--permits", "1/4"});
  EXPECT_EQ(others.exit, exited(64)) << others.err;
  EXPECT_TRUE(contains(others.err, "3") && contains(others.err, "4")) << others.err;
  end(one);
}

TEST_F(CliKinds, GuardianGivesBackWhatAKilledWrapperHeld) {
  child_process reader{held({"--shared", "--ttl", "60s"})};
  ASSERT_FALSE(ready_numbers(reader).empty()) << reader.stderr_text();
  reader.signal(SIGKILL);
  EXPECT_TRUE(eventually([&] { return is_free("a"); })) << "long before its TTL";
}

// The inner one would wait for a writer that waits for the outer one, or for permits that the outer
// one has.
TEST_F(CliKinds, RunUnderOneOfManyHoldersThatWouldWaitForItselfIsRefused) {
  const std::vector<std::vector<std::string>> kinds{{"--shared"}, {"--permits", "1/3"}};
  for (const auto& kind : kinds) {
    child_process first{held(kind)};
    ASSERT_FALSE(ready_numbers(first).empty()) << first.stderr_text();
    auto args = std::vector<std::string>{"run", "a", kind.front()};
    if (kind.size() > 1) args.push_back(kind.back());
    std::vector<std::string> inner{HOLDFAST_BINARY};
    inner.insert(inner.end(), args.begin(), args.end());
    args.push_back("--");
    args.insert(args.end(), inner.begin(), inner.end());
    args.insert(args.end(), {"--", "true"});
    const auto refused = run(args);
    EXPECT_EQ(refused.exit, exited(64)) << refused.err;
    EXPECT_TRUE(contains(refused.err, "would wait for itself")) << refused.err;
    end(first);
  }
}

TEST_F(CliKinds, NonsenseIsRefused) {
  for (const char* permits : {"", "1", "0/3", "4/3", "1/x", "1/3/5", "-1/3"}) {
    const auto refused = tried({"--permits", permits});
    EXPECT_EQ(refused.exit, exited(64)) << permits;
    EXPECT_TRUE(contains(refused.err, "--permits")) << refused.err;
  }
  EXPECT_EQ(tried({"--shared", "--writer"}).exit, exited(64));
  EXPECT_EQ(tried({"--shared", "--permits", "1/3"}).exit, exited(64));
  const auto quorum =
      tried({"--store", "redlock://127.0.0.1:1,127.0.0.1:2,127.0.0.1:3", "--permits", "1/3"});
  EXPECT_EQ(quorum.exit, exited(64)) << quorum.err;
}

TEST_F(CliKinds, MutexOfTheSameNameIsToldApart) {
  child_process reader{held({"--shared"})};
  ASSERT_FALSE(ready_numbers(reader).empty()) << reader.stderr_text();
  EXPECT_EQ(tried({}).exit, exited(69)) << "another kind of lock, not a busy one";
  end(reader);
}

TEST_F(CliKinds, LatchIsShownAndNotTakenForALock) {
  client c{server_.url()};
  latch all = c.latch("a", 3);
  all.count_down("unit");
  const auto closed = run({"status", "a"});
  EXPECT_TRUE(contains(closed.out, "latch: closed, 2 of 3 have not counted")) << closed.out;
  EXPECT_TRUE(contains(run({"status", "a", "--json"}).out, "\"kind\":\"latch\""));
  EXPECT_FALSE(contains(closed.out, "free")) << closed.out;
  const auto broken = run({"break", "a", "--token", "1"});
  EXPECT_EQ(broken.exit, exited(1)) << broken.err;
  EXPECT_TRUE(contains(broken.err, "a latch, which nobody holds")) << broken.err;
  EXPECT_EQ(tried({}).exit, exited(69)) << "another kind of lock, not a busy one";
  all.count_down(2);
  EXPECT_TRUE(contains(run({"status", "a"}).out, "latch: open, all 3 have counted"));
}

}  // namespace
}  // namespace holdfast::test
