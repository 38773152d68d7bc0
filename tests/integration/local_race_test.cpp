// Many processes want the one server at the same moment.
#include <sys/stat.h>

#include <atomic>
#include <random>
#include <thread>

#include "integration/local_fixture.hpp"

namespace holdfast::test {
namespace {

using namespace std::chrono_literals;

class LocalRace : public LocalServer {
 protected:
  // Starts `count` processes that all call ensure_running() once the gate opens.
  std::vector<pid_t> crowd(std::size_t count) {
    int gate[2];
    if (::pipe2(gate, O_CLOEXEC) != 0) return {};
    std::vector<pid_t> all(count);
    for (pid_t& one : all) {
      one = in_process([&] {
        ::close(gate[1]);
        char byte = 0;
        while (::read(gate[0], &byte, 1) < 0 && errno == EINTR) {
        }
        return bool{ensured()};
      });
    }
    ::close(gate[0]);
    ::close(gate[1]);
    return all;
  }
};

TEST_F(LocalRace, TwentyProcessesStartOneServer) {
  constexpr int crowd_size = 20;
  for (int round = 0; round < 5; ++round) {
    int well = 0;
    for (const pid_t one : crowd(crowd_size))
      well += succeeded(one) ? 1 : 0;
    EXPECT_EQ(well, crowd_size);
    ASSERT_EQ(servers().size(), 1U);
    ASSERT_EQ(ask({"INCR", "rounds"}), std::to_string(round + 1)) << "one lock space throughout";
    kill_server();
  }
}

TEST_F(LocalRace, KilledStartersLeaveNothingInTheWay) {
  std::minstd_rand random{20240607};
  for (int round = 0; round < 10; ++round) {
    const auto all = crowd(6);
    for (const pid_t one : all) {
      std::this_thread::sleep_for(std::chrono::microseconds{random() % 4000});
      ::kill(one, SIGKILL);
    }
    for (const pid_t one : all)
      (void)succeeded(one);
    ASSERT_TRUE(ensured());
    ASSERT_TRUE(eventually([this] { return servers().size() == 1; }));
    ASSERT_EQ(ask({"INCR", "rounds"}), std::to_string(round + 1));
    kill_server();
  }
}

TEST_F(LocalRace, StoppedStarterIsNamed) {
  ASSERT_EQ(::mkdir(folder().c_str(), 0700), 0);
  const pid_t starter = in_process([this] {
    const int fd = ::open(folder().c_str(), O_RDONLY | O_DIRECTORY);
    auto lock = stores::local::file_lock::open_start_lock(fd);
    if (!lock || !lock->try_lock()) return false;
    ::raise(SIGSTOP);
    return true;
  });
  ASSERT_EQ(::waitpid(starter, nullptr, WUNTRACED), starter);
  const failure what = refused(200ms);
  EXPECT_EQ(what.code, errc::store_unreachable);
  EXPECT_NE(what.message.find("pid " + std::to_string(starter)), std::string::npos) << what.message;
  ::kill(starter, SIGCONT);
  EXPECT_TRUE(succeeded(starter));
  EXPECT_TRUE(ensured());
}

TEST_F(LocalRace, ThreadsOfOneProcessStartOneServer) {
  std::vector<std::thread> threads(8);
  std::atomic<int> well = 0;
  for (std::thread& one : threads) {
    one = std::thread{[&] { well += bool{ensured()} ? 1 : 0; }};
  }
  for (auto& thread : threads)
    thread.join();
  EXPECT_EQ(well, 8);
  EXPECT_EQ(servers().size(), 1U);
}

TEST_F(LocalRace, StopAndStartAtOnceEndWithOneOrNone) {
  for (int round = 0; round < 5; ++round) {
    auto all = crowd(6);
    for (int i = 0; i < 3; ++i) {
      all.push_back(in_process([this] { return bool{local_server{folder()}.stop(soon())}; }));
    }
    for (const pid_t one : all)
      EXPECT_TRUE(succeeded(one));
    EXPECT_LE(servers().size(), 1U);
    ASSERT_TRUE(ensured());
    EXPECT_EQ(servers().size(), 1U);
  }
}

}  // namespace
}  // namespace holdfast::test
