// A server is started, found, shared, looked at and stopped.
#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "integration/local_fixture.hpp"
#include "stores/local/binary.hpp"

namespace holdfast::test {
namespace {

namespace fs = std::filesystem;

std::string slurp(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream{path}.rdbuf();
  return text.str();
}

unsigned mode_of(const std::string& path) {
  struct stat found {};
  return ::lstat(path.c_str(), &found) == 0 ? found.st_mode & 0777U : 0U;
}

std::vector<std::string> descriptors_of(pid_t pid) {
  std::vector<std::string> all;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator{"/proc/" + std::to_string(pid) + "/fd", error}) {
    all.push_back(fs::read_symlink(entry.path(), error).string());
  }
  return all;
}

// A field of /proc/PID/status that is a set of signals.
std::uint64_t signals_of(pid_t pid, const std::string& field) {
  std::istringstream lines{slurp("/proc/" + std::to_string(pid) + "/status")};
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(field + ":"))
      return std::stoull(line.substr(field.size() + 1), nullptr, 16);
  }
  return ~0ULL;
}

TEST_F(LocalServer, StartsOnceAndIsFoundAgain) {
  ASSERT_TRUE(ensured());
  const pid_t pid = server_pid();
  ASSERT_TRUE(ensured());
  EXPECT_EQ(server_pid(), pid);
  EXPECT_EQ(servers(), std::vector{pid});
  EXPECT_EQ(ask({"PING"}), "PONG");
}

TEST_F(LocalServer, OnlyItsUserCanReachIt) {
  ASSERT_TRUE(ensured());
  EXPECT_EQ(mode_of(folder()), 0700U);
  EXPECT_EQ(mode_of(file("redis.sock")), 0700U);
  for (const auto& entry : fs::recursive_directory_iterator{folder()}) {
    EXPECT_EQ(mode_of(entry.path().string()) & 077U, 0U) << entry.path();
  }
}

TEST_F(LocalServer, ListensOnNoTcpPort) {
  ASSERT_TRUE(ensured());
  const std::string tcp = slurp("/proc/net/tcp") + slurp("/proc/net/tcp6");
  for (const std::string& target : descriptors_of(server_pid())) {
    if (!target.starts_with("socket:[")) continue;
    const std::string inode = target.substr(8, target.size() - 9);
    EXPECT_EQ(tcp.find(" " + inode + " "), std::string::npos) << target;
  }
}

TEST_F(LocalServer, EvictsNothingAndHasNoDebugCommand) {
  ASSERT_TRUE(ensured());
  EXPECT_EQ(raw_redis{{.socket_path = file("redis.sock")}}
                .command({"CONFIG", "GET", "maxmemory-policy"})
                .items.at(1)
                .text,
            "noeviction");
  EXPECT_NE(ask({"DEBUG", "SLEEP", "0"}).find("unknown command"), std::string::npos);
}

TEST_F(LocalServer, SurvivesItsStarterAndLeavesItNoChild) {
  ASSERT_TRUE(succeeded(in_process([this] {
    const bool up = bool{ensured()};
    return up && ::waitpid(-1, nullptr, WNOHANG | __WALL) < 0 && errno == ECHILD;
  })));
  const pid_t pid = server_pid();
  ASSERT_GT(pid, 0);
  EXPECT_NE(::getsid(pid), ::getsid(0));
  EXPECT_NE(::getsid(pid), pid) << "a session leader could acquire a terminal";
  EXPECT_EQ(ask({"PING"}), "PONG");
}

TEST_F(LocalServer, InheritsNothingOfItsStarter) {
  const std::string marker = root() + "/marker";
  ASSERT_TRUE(succeeded(in_process([&] {
    for (int i = 0; i < 20; ++i)
      ::open(marker.c_str(), O_RDWR | O_CREAT, 0600);  // inheritable
    ::close(STDIN_FILENO);
    ::setenv("HOLDFAST_TEST_MARK", "here", 1);
    ::signal(SIGUSR2, SIG_IGN);
    sigset_t all;
    ::sigfillset(&all);
    ::sigprocmask(SIG_SETMASK, &all, nullptr);
    return bool{ensured()};
  })));
  const pid_t pid = server_pid();
  EXPECT_EQ(signals_of(pid, "SigIgn") & (1ULL << (SIGUSR2 - 1)), 0U);
  EXPECT_EQ(signals_of(pid, "SigBlk"), 0U);
  const std::string environment = slurp("/proc/" + std::to_string(pid) + "/environ");
  EXPECT_EQ(environment.find("HOLDFAST_TEST_MARK"), std::string::npos);
  for (const std::string& target : descriptors_of(pid)) {
    EXPECT_NE(target, marker);
    EXPECT_NE(target, file("lock")) << "it would keep the start lock";
  }
  EXPECT_EQ(fs::read_symlink("/proc/" + std::to_string(pid) + "/cwd"), folder());
}

TEST_F(LocalServer, StarterGetsNoSigchld) {
  ASSERT_TRUE(succeeded(in_process([this] {
    static volatile sig_atomic_t signals = 0;
    ::signal(SIGCHLD, [](int) { signals = 1; });
    return bool{ensured()} && signals == 0;
  })));
}

TEST_F(LocalServer, FolderComesFromTheUserIdAlone) {
  const std::string expected = "/tmp/holdfast-" + std::to_string(::geteuid());
  ASSERT_TRUE(succeeded(in_process([&] {
    for (const char* name : {"TMPDIR", "TMP", "TEMP", "HOME", "XDG_RUNTIME_DIR", "XDG_CACHE_HOME",
                             "USER", "LOGNAME", "PWD", "HOLDFAST_STORE"}) {
      ::setenv(name, "/nonexistent", 1);
    }
    return stores::local::default_folder() == expected &&
           local_server{}.socket_path() == expected + "/redis.sock" && bool{ensured()};
  })));
}

TEST_F(LocalServer, StatusStartsNothing) {
  auto before = local_server{folder()}.status();
  ASSERT_TRUE(before) << before.error().message;
  EXPECT_FALSE(before->running);
  EXPECT_EQ(before->pid, 0);
  EXPECT_EQ(before->folder, folder());
  EXPECT_EQ(before->socket, file("redis.sock"));
  EXPECT_FALSE(fs::exists(folder()));

  ASSERT_TRUE(ensured());
  auto after = local_server{folder()}.status();
  ASSERT_TRUE(after) << after.error().message;
  EXPECT_TRUE(after->running);
  EXPECT_EQ(servers(), std::vector{static_cast<pid_t>(after->pid)});
}

TEST_F(LocalServer, StopWaitsUntilItIsGone) {
  auto none = local_server{folder()}.stop(soon());
  ASSERT_TRUE(none) << none.error().message;
  EXPECT_FALSE(*none);

  ASSERT_TRUE(ensured());
  const pid_t pid = server_pid();
  auto stopped = local_server{folder()}.stop(soon());
  ASSERT_TRUE(stopped) << stopped.error().message;
  EXPECT_TRUE(*stopped);
  EXPECT_FALSE(alive(pid));
  EXPECT_FALSE(fs::exists(file("redis.sock")));

  auto again = local_server{folder()}.stop(soon());
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_FALSE(*again);
  ASSERT_TRUE(ensured());
}

TEST_F(LocalServer, MissingRedisSaysWhatToInstall) {
  local_server server{{.folder = folder(), .binary = {{"/nonexistent/redis-server"}, false}}};
  auto done = server.ensure_running(soon());
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, errc::store_missing);
  EXPECT_EQ(done.error().message,
            "local: needs redis-server; install it: apt install redis-server");
}

TEST_F(LocalServer, BinaryThatCannotRunIsNamed) {
  const std::string broken = root() + "/redis-server";
  std::ofstream{broken} << "#!/nonexistent/interpreter\n";
  ASSERT_EQ(::chmod(broken.c_str(), 0755), 0);
  local_server server{{.folder = folder(), .binary = {{broken}, false}}};
  auto done = server.ensure_running(soon());
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, errc::store_missing);
  EXPECT_NE(done.error().message.find(broken), std::string::npos) << done.error().message;
}

TEST_F(LocalServer, PathIsSearchedLast) {
  const std::string own = root() + "/redis-server";
  fs::copy_file("/bin/true", own);
  ASSERT_TRUE(succeeded(in_process([&] {
    ::setenv("PATH", (":relative:" + root()).c_str(), 1);
    auto listed = stores::local::find_server({{"/bin/true"}, true});
    auto in_path = stores::local::find_server({{"/nonexistent"}, true});
    auto nowhere = stores::local::find_server({{"/nonexistent"}, false});
    return listed && *listed == "/bin/true" && in_path && *in_path == own && !nowhere;
  })));
}

}  // namespace
}  // namespace holdfast::test
