// What goes wrong with a server or its folder, and what becomes of the locks.
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "integration/local_fixture.hpp"

namespace holdfast::test {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

bool mentions(const failure& what, const std::string& text) {
  return what.message.find(text) != std::string::npos;
}

class LocalFaults : public LocalServer {
 protected:
  void break_data() const {
    bool broken = false;
    for (const auto& entry : fs::recursive_directory_iterator{folder()}) {
      if (!entry.path().string().ends_with(".aof")) continue;
      std::ofstream{entry.path(), std::ios::trunc} << "this is not what Redis wrote\r\n";
      broken = true;
    }
    ASSERT_TRUE(broken);
  }
};

TEST_F(LocalFaults, KilledServerIsRestartedWithEveryLockItAnswered) {
  for (int round = 0; round < 5; ++round) {
    ASSERT_TRUE(ensured());
    const pid_t before = server_pid();
    const std::string key = "lock-" + std::to_string(round);
    ASSERT_EQ(ask({"SET", key, "held", "NX", "PX", "60000"}), "OK");
    ASSERT_EQ(::kill(before, SIGKILL), 0);  // the reply is all that we waited for

    ASSERT_TRUE(ensured());
    EXPECT_NE(server_pid(), before);
    EXPECT_EQ(ask({"GET", key}), "held");
    const int left_ms = std::stoi(ask({"PTTL", key}));
    EXPECT_GT(left_ms, 0);
    EXPECT_LE(left_ms, 60000);
    EXPECT_EQ(servers().size(), 1U);
  }
}

TEST_F(LocalFaults, StoppedServerKeepsLocksForItsSuccessor) {
  ASSERT_TRUE(ensured());
  ASSERT_EQ(ask({"SET", "lock", "held", "PX", "60000"}), "OK");
  auto stopped = local_server{folder()}.stop(soon());
  ASSERT_TRUE(stopped) << stopped.error().message;
  ASSERT_TRUE(ensured());
  EXPECT_EQ(ask({"GET", "lock"}), "held");
}

TEST_F(LocalFaults, KilledWhileItsFileIsRewritten) {
  ASSERT_TRUE(ensured());
  for (int i = 0; i < 2000; ++i) {
    (void)ask({"SET", "lock-" + std::to_string(i), "held", "PX", "60000"});
  }
  (void)ask({"BGREWRITEAOF"});
  ::kill(server_pid(), SIGKILL);
  ASSERT_TRUE(ensured());
  EXPECT_EQ(ask({"DBSIZE"}), "2000");
}

TEST_F(LocalFaults, StaleSocketAndPidFileAreReplaced) {
  ASSERT_TRUE(ensured());
  kill_server();
  ASSERT_TRUE(fs::exists(file("redis.sock")));
  std::ofstream{file("redis.pid"), std::ios::trunc} << ::getpid() << '\n';  // reused since
  ASSERT_TRUE(ensured());
  EXPECT_NE(server_pid(), ::getpid());
  EXPECT_EQ(ask({"PING"}), "PONG");
}

TEST_F(LocalFaults, HungServerIsNamedAndGetsNoSecondBesideIt) {
  ASSERT_TRUE(ensured());
  const pid_t pid = server_pid();
  ::kill(pid, SIGSTOP);
  const auto began = runtime::now();
  const failure what = refused(300ms);
  EXPECT_LT(runtime::now() - began, 5s);
  EXPECT_EQ(what.code, errc::store_unreachable);
  EXPECT_TRUE(mentions(what, "pid " + std::to_string(pid))) << what.message;
  EXPECT_TRUE(mentions(what, "kill -CONT " + std::to_string(pid))) << what.message;

  auto stopped = local_server{folder()}.stop(in(300ms));
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().code, errc::store_unreachable);
  EXPECT_EQ(server_pid(), pid);  // a server that hangs counts as running
  EXPECT_EQ(servers(), std::vector{pid});
  ::kill(pid, SIGCONT);
  ASSERT_TRUE(eventually([&] { return servers().empty(); })) << "SHUTDOWN was under way";
  ASSERT_TRUE(ensured());
}

TEST_F(LocalFaults, HungServerWithoutASocketGetsNoSecondBesideIt) {
  ASSERT_TRUE(ensured());
  const pid_t pid = server_pid();
  ::kill(pid, SIGSTOP);
  fs::remove(file("redis.sock"));
  const failure what = refused(300ms);
  EXPECT_EQ(what.code, errc::store_unreachable);
  EXPECT_TRUE(mentions(what, "pid " + std::to_string(pid))) << what.message;
  EXPECT_EQ(servers(), std::vector{pid});
}

TEST_F(LocalFaults, DeletedFolderDoesNotMakeASecondLockSpace) {
  ASSERT_TRUE(ensured());
  const pid_t pid = server_pid();
  fs::remove_all(folder());
  const failure what = refused();
  EXPECT_EQ(what.code, errc::store_unreachable);
  EXPECT_TRUE(mentions(what, "pid " + std::to_string(pid))) << what.message;
  EXPECT_TRUE(mentions(what, "holdfast local stop")) << what.message;
  EXPECT_FALSE(local_server{folder()}.status());
  EXPECT_EQ(servers(), std::vector{pid});

  auto stopped = local_server{folder()}.stop(soon());
  ASSERT_TRUE(stopped) << stopped.error().message;
  EXPECT_TRUE(*stopped);
  ASSERT_TRUE(ensured());
  EXPECT_NE(server_pid(), pid);
}

TEST_F(LocalFaults, TmpCleanerLeavesARunningServersFolder) {
  const std::string program = "/usr/bin/systemd-tmpfiles";
  if (!fs::exists(program)) GTEST_SKIP() << "no systemd-tmpfiles here";
  const auto clean = [&] {
    const std::string rules = root() + "/rules.conf";
    std::ofstream{rules} << "e " << root() << " - - - 0\n";  // everything is too old
    fs::create_directory(root() + "/control");
    run_program({.args = {program, "--clean", rules}});
    ASSERT_FALSE(fs::exists(root() + "/control")) << "the cleaner did nothing: no proof";
  };
  ASSERT_TRUE(ensured());
  clean();
  EXPECT_TRUE(fs::exists(file("redis.pid")));
  EXPECT_EQ(ask({"PING"}), "PONG");

  kill_server();
  // The kernel may take a moment to let go of what the server had locked.
  EXPECT_TRUE(eventually([&] {
    clean();
    return !fs::exists(folder());
  })) << "it is the server that keeps it";
}

TEST_F(LocalFaults, BrokenFileIsAnErrorThatQuotesRedis) {
  ASSERT_TRUE(ensured());
  kill_server();
  break_data();
  const failure what = refused();
  EXPECT_EQ(what.code, errc::store_unreachable);
  EXPECT_TRUE(mentions(what, "Bad file format")) << what.message;
  EXPECT_TRUE(mentions(what, file("redis.log"))) << what.message;
}

TEST_F(LocalFaults, BrokenFileFromBeforeARestartOfTheHostIsDropped) {
  ASSERT_TRUE(ensured());
  kill_server();
  break_data();
  std::ofstream{file("boot"), std::ios::trunc} << "another boot\n";
  ASSERT_TRUE(ensured());
  kill_server();
  break_data();
  EXPECT_EQ(refused().code, errc::store_unreachable) << "only once per boot";
}

// Nothing says that the host restarted, so locks may be held, and what the file has is not dropped.
TEST_F(LocalFaults, BrokenFileWithoutABootFileIsKept) {
  ASSERT_TRUE(ensured());
  kill_server();
  break_data();
  ASSERT_TRUE(fs::remove(file("boot")));
  EXPECT_EQ(refused().code, errc::store_unreachable);
  EXPECT_EQ(refused().code, errc::store_unreachable) << "the first try kept it as well";
}

TEST_F(LocalFaults, UnsafeFoldersAreRefused) {
  fs::create_directory(root() + "/target");
  fs::create_directory_symlink(root() + "/target", folder());
  failure what = refused();
  EXPECT_EQ(what.code, errc::unsafe_folder);
  EXPECT_TRUE(mentions(what, "symbolic link")) << what.message;
  EXPECT_FALSE(local_server{folder()}.status());
  EXPECT_FALSE(local_server{folder()}.stop(soon()));
  fs::remove(folder());

  std::ofstream{folder()} << "a file";
  what = refused();
  EXPECT_EQ(what.code, errc::unsafe_folder);
  EXPECT_TRUE(mentions(what, "not a folder")) << what.message;
  fs::remove(folder());

  for (const mode_t mode : {0755U, 0710U, 0707U}) {
    ASSERT_EQ(::mkdir(folder().c_str(), 0700), 0);
    ASSERT_EQ(::chmod(folder().c_str(), mode), 0);
    what = refused();
    EXPECT_EQ(what.code, errc::unsafe_folder);
    EXPECT_TRUE(mentions(what, "chmod 700")) << what.message;
    fs::remove(folder());
  }

  ASSERT_EQ(::chmod(root().c_str(), 0777), 0);
  what = refused();
  EXPECT_EQ(what.code, errc::unsafe_folder);
  EXPECT_TRUE(mentions(what, "chmod +t")) << what.message;
  EXPECT_TRUE(servers().empty());
}

TEST_F(LocalFaults, FolderOfAnotherUserIsRefused) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a folder away";
  ASSERT_EQ(::mkdir(folder().c_str(), 0700), 0);
  ASSERT_EQ(::chown(folder().c_str(), 65534, 65534), 0);
  const failure what = refused();
  EXPECT_EQ(what.code, errc::unsafe_folder);
  EXPECT_TRUE(mentions(what, "65534")) << what.message;
}

TEST_F(LocalFaults, SomethingElseOnTheSocketIsNotTakenForAServer) {
  ASSERT_EQ(::mkdir(folder().c_str(), 0700), 0);
  const int listener = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  file("redis.sock").copy(static_cast<char*>(address.sun_path), sizeof address.sun_path - 1);
  ASSERT_EQ(::bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(::listen(listener, 1), 0);
  std::thread web{[listener] {
    const int one = ::accept(listener, nullptr, nullptr);
    char request[64];
    ::recv(one, request, sizeof request, 0);  // closing with it unread would cut the answer off
    constexpr std::string_view answer = "HTTP/1.1 400 Bad Request\r\n";
    ::send(one, answer.data(), answer.size(), MSG_NOSIGNAL);
    ::close(one);
  }};
  EXPECT_EQ(refused().code, errc::incompatible);
  web.join();
  ::close(listener);
}

// It answers like a Redis server, in a folder of ours, but runs as another user.
TEST_F(LocalFaults, ServerOfAnotherUserIsRefused) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  ASSERT_EQ(::mkdir(folder().c_str(), 0700), 0);
  const int listener = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  file("redis.sock").copy(static_cast<char*>(address.sun_path), sizeof address.sun_path - 1);
  ASSERT_EQ(::bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  int ready[2];
  ASSERT_EQ(::pipe2(ready, O_CLOEXEC), 0);
  const pid_t pid = in_process([&] {
    // A peer's user is the one that called listen().
    if (::setuid(65534) != 0 || ::listen(listener, 8) != 0) return false;
    if (::write(ready[1], "x", 1) != 1) return false;
    for (;;) {
      const int one = ::accept(listener, nullptr, nullptr);
      char request[64];
      ::recv(one, request, sizeof request, 0);
      ::send(one, "+PONG\r\n", 7, MSG_NOSIGNAL);
      ::close(one);
    }
  });
  ::close(ready[1]);
  char byte = 0;
  const bool listens = ::read(ready[0], &byte, 1) == 1;
  const failure what = listens ? refused() : failure{};
  const bool status_refused = listens && !local_server{folder()}.status();
  ::kill(pid, SIGKILL);
  EXPECT_FALSE(succeeded(pid));
  ::close(ready[0]);
  ::close(listener);
  ASSERT_TRUE(listens);
  EXPECT_EQ(what.code, errc::unsafe_folder) << what.message;
  EXPECT_TRUE(mentions(what, "65534")) << what.message;
  EXPECT_TRUE(status_refused);
}

TEST_F(LocalFaults, PathsThatCannotWorkAreRefusedAtOnce) {
  for (const std::string& path : {std::string{"relative"}, std::string{}, root() + "/",
                                  root() + "/" + std::string(100, 'x')}) {
    auto done = local_server{path}.ensure_running(soon());
    ASSERT_FALSE(done) << path;
    EXPECT_EQ(done.error().code, errc::invalid_argument) << path;
  }
}

}  // namespace
}  // namespace holdfast::test
