#include "support/zookeeper_ensemble.hpp"

#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <system_error>

#include "support/raw_redis.hpp"
#include "support/redis_server.hpp"
#include "support/zookeeper_raw.hpp"

namespace holdfast::test {

namespace {

constexpr std::chrono::seconds start_limit{60};

std::string text_of(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream{path}.rdbuf();
  return text.str();
}

}  // namespace

zookeeper_ensemble::zookeeper_ensemble(std::size_t servers, disk with) : disk_{with} {
  // Others may take the free ports before the servers do.
  constexpr int tries = 3;
  for (int attempt = 0; attempt < tries; ++attempt) {
    servers_.clear();
    servers_.resize(servers);
    for (auto& one : servers_) {
      one.client_port = free_port();
      one.quorum_port = free_port();
      one.election_port = free_port();
    }
    for (std::size_t i = 0; i < servers; ++i)
      start(i);
    const auto all_serve = [&] {
      for (std::size_t i = 0; i < servers; ++i) {
        if (!serves(i)) return false;
      }
      return true;
    };
    if (!eventually(all_serve, start_limit)) continue;
    // The first session of a server that has just started takes long.
    for (const auto& one : servers_)
      raw_zookeeper{"127.0.0.1:" + std::to_string(one.client_port)};
    return;
  }
  throw std::runtime_error{"ZooKeeper does not start:\n" + logs()};
}

zookeeper_ensemble::~zookeeper_ensemble() {
  for (auto& one : servers_) {
    if (one.process) one.process->signal(SIGKILL);
  }
}

std::string zookeeper_ensemble::folder(std::size_t i) const {
  return folder_.file("server" + std::to_string(i + 1));
}

void zookeeper_ensemble::start(std::size_t i) {
  const auto data = folder(i);
  std::filesystem::create_directories(data);
  std::ofstream{data + "/myid"} << i + 1 << '\n';
  {
    std::ofstream config{data + "/zoo.cfg"};
    config << "dataDir=" << data << "\nclientPort=" << servers_[i].client_port
           << "\nclientPortAddress=127.0.0.1\ntickTime=" << tick.count()
           << "\ninitLimit=100\nsyncLimit=60\nmaxSessionTimeout=180000\nminSessionTimeout="
           << session_min.count()
           << "\nadmin.enableServer=false\nmaxClientCnxns=0\n4lw.commands.whitelist=*\n";
    for (std::size_t other = 0; servers_.size() > 1 && other < servers_.size(); ++other) {
      config << "server." << other + 1 << "=127.0.0.1:" << servers_[other].quorum_port << ':'
             << servers_[other].election_port << '\n';
    }
  }
  // Little of everything: there are several, and other tests. Empty containers go every second.
  const std::string command =
      "exec java -Xmx128m -Xss512k -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xshare:auto "
      "-Dzookeeper.forceSync=" +
      std::string{disk_ == disk::durable ? "yes" : "no"} +
      " -Dznode.container.checkIntervalMs=1000 "
      "-Dzookeeper.jmx.log4j.disable=true -cp /usr/share/java/zookeeper.jar "
      "org.apache.zookeeper.server.quorum.QuorumPeerMain '" +
      data + "/zoo.cfg' >>'" + data + "/log' 2>&1";
  servers_[i].process = std::make_unique<child_process>(
      process_options{.args = {"sh", "-c", command}, .env = {{"LD_PRELOAD", std::nullopt}}});
}

std::string zookeeper_ensemble::hosts() const {
  std::string all;
  for (const auto& one : servers_)
    all += (all.empty() ? "127.0.0.1:" : ",127.0.0.1:") + std::to_string(one.client_port);
  return all;
}

std::string zookeeper_ensemble::url(const std::string& chroot) const {
  return "zookeeper://" + hosts() + chroot + "?tick=" + std::to_string(tick.count());
}

std::string zookeeper_ensemble::ask(std::size_t i, const std::string& word) const {
  int fd = -1;
  try {
    fd = connect_to({{}, servers_[i].client_port});
  } catch (const std::system_error&) {
    return {};
  }
  constexpr timeval limit{2, 0};
  ::setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  static_cast<void>(::send(fd, word.data(), word.size(), MSG_NOSIGNAL));
  std::string answer;
  std::array<char, 4096> buffer;
  for (ssize_t got; (got = ::recv(fd, buffer.data(), buffer.size(), 0)) > 0;)
    answer.append(buffer.data(), static_cast<std::size_t>(got));
  ::close(fd);
  return answer;
}

bool zookeeper_ensemble::serves(std::size_t i) const {
  return ask(i, "srvr").find("Mode: ") != std::string::npos;
}

bool zookeeper_ensemble::await_serving(std::size_t i) const {
  return eventually([&] { return serves(i); }, start_limit);
}

std::optional<std::size_t> zookeeper_ensemble::leader() const {
  for (std::size_t i = 0; i < servers_.size(); ++i) {
    const auto answer = ask(i, "srvr");
    if (answer.find("Mode: leader") != std::string::npos ||
        answer.find("Mode: standalone") != std::string::npos)
      return i;
  }
  return std::nullopt;
}

void zookeeper_ensemble::kill(std::size_t i) {
  servers_[i].process->signal(SIGKILL);
  static_cast<void>(servers_[i].process->wait_exit());
}

void zookeeper_ensemble::restart(std::size_t i) {
  start(i);
  if (!await_serving(i)) throw std::runtime_error{"ZooKeeper does not restart:\n" + logs()};
}

void zookeeper_ensemble::pause(std::size_t i) {
  const auto pid = servers_[i].process->pid();
  ::kill(pid, SIGSTOP);
  // Its threads stop one after the other.
  static_cast<void>(eventually([&] {
    const auto stat = text_of("/proc/" + std::to_string(pid) + "/stat");
    return stat.find(") T ") != std::string::npos;
  }));
}

void zookeeper_ensemble::resume(std::size_t i) { servers_[i].process->signal(SIGCONT); }

void zookeeper_ensemble::pause_all() {
  for (std::size_t i = 0; i < servers_.size(); ++i)
    pause(i);
}

void zookeeper_ensemble::resume_all() {
  for (std::size_t i = 0; i < servers_.size(); ++i)
    resume(i);
}

std::string zookeeper_ensemble::logs() const {
  std::string all;
  for (std::size_t i = 0; i < servers_.size(); ++i)
    all += text_of(folder(i) + "/log");
  return all;
}

std::string fresh_chroot() {
  static std::atomic<int> last{0};
  return "/test-" + std::to_string(::getpid()) + "-" + std::to_string(++last);
}

}  // namespace holdfast::test
