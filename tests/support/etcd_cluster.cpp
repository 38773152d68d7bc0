#include "support/etcd_cluster.hpp"

#include <openssl/evp.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <system_error>

#include <nlohmann/json.hpp>

#include "support/raw_redis.hpp"
#include "support/redis_server.hpp"

namespace holdfast::test {

namespace {

using nlohmann::json;

// Everything on a disk is written through: in memory a test measures what it is about.
std::string memory_folder() {
  const std::string memory = "/dev/shm";
  return ::access(memory.c_str(), W_OK) == 0 ? memory : "/tmp";
}

std::string base64(const std::string& bytes) {
  std::string out(4 * ((bytes.size() + 2) / 3) + 1, '\0');
  const auto* from = reinterpret_cast<const unsigned char*>(bytes.data());
  const int size = EVP_EncodeBlock(reinterpret_cast<unsigned char*>(out.data()), from,
                                   static_cast<int>(bytes.size()));
  out.resize(static_cast<std::size_t>(size));
  return out;
}

json keys_with(const std::string& prefix) {
  std::string end = prefix;
  end.back() = static_cast<char>(end.back() + 1);
  return {{"key", base64(prefix)}, {"range_end", base64(end)}};
}

// 'T' while it is stopped.
char state_of(pid_t pid) {
  std::ifstream file{"/proc/" + std::to_string(pid) + "/stat"};
  std::string text;
  std::getline(file, text);
  const auto at = text.rfind(')');
  return at == std::string::npos || at + 2 >= text.size() ? '?' : text[at + 2];
}

}  // namespace

etcd_cluster::etcd_cluster(etcd_cluster_options options)
    : options_{std::move(options)}, folder_{memory_folder()}, members_(options_.members) {
  // Another process may take a free port before etcd does.
  constexpr int tries = 5;
  for (int i = 0; i < tries; ++i) {
    if (start_all()) return;
  }
  throw std::runtime_error{"etcd does not start:\n" + logs()};
}

bool etcd_cluster::start_all() {
  for (std::size_t i = 0; i < size(); ++i) {
    members_[i].process.reset();
    std::filesystem::remove_all(folder_.path() / std::to_string(i));
    members_[i].port = free_port();
    members_[i].peer_port = free_port();
  }
  for (std::size_t i = 0; i < size(); ++i)
    start(i, true);
  for (std::size_t i = 0; i < size(); ++i)
    if (!await_answer(i)) return false;
  return true;
}

void etcd_cluster::start(std::size_t index, bool is_new) {
  auto& one = members_[index];
  const auto name = [](std::size_t i) { return "m" + std::to_string(i); };
  const auto peer = [&](std::size_t i) {
    return "http://127.0.0.1:" + std::to_string(members_[i].peer_port);
  };
  std::string all;
  for (std::size_t i = 0; i < size(); ++i)
    all += (i == 0 ? "" : ",") + name(i) + "=" + peer(i);
  const auto client = options_.scheme + "://127.0.0.1:" + std::to_string(one.port);
  std::vector<std::string> arguments{"etcd",
                                     "--name",
                                     name(index),
                                     "--data-dir",
                                     folder_.file(std::to_string(index)),
                                     "--listen-client-urls",
                                     client,
                                     "--advertise-client-urls",
                                     client,
                                     "--listen-peer-urls",
                                     peer(index),
                                     "--initial-advertise-peer-urls",
                                     peer(index),
                                     "--initial-cluster",
                                     all,
                                     "--initial-cluster-state",
                                     is_new ? "new" : "existing",
                                     "--logger",
                                     "zap",
                                     "--log-level",
                                     "warn",
                                     "--log-outputs",
                                     folder_.file(name(index) + ".log")};
  for (const auto& argument : options_.arguments)
    arguments.push_back(argument);
  one.process = std::make_unique<child_process>(std::move(arguments));
}

std::string etcd_cluster::logs() const {
  std::ostringstream text;
  for (std::size_t i = 0; i < size(); ++i)
    text << std::ifstream{folder_.file("m" + std::to_string(i) + ".log")}.rdbuf();
  return text.str();
}

std::string etcd_cluster::url() const {
  std::string all = options_.scheme == "https" ? "etcd+tls://" : "etcd://";
  for (std::size_t i = 0; i < size(); ++i)
    all += (i == 0 ? "127.0.0.1:" : ",127.0.0.1:") + std::to_string(members_[i].port);
  return all;
}

// ---- what is done to one -----------------------------------------------------------------------

void etcd_cluster::kill9(std::size_t member) {
  members_[member].process->signal(SIGKILL);
  members_[member].process->wait_exit();
  members_[member].process.reset();
}

void etcd_cluster::restart(std::size_t member) {
  start(member, false);
  if (!await_answer(member)) throw std::runtime_error{"etcd does not start again:\n" + logs()};
}

void etcd_cluster::pause(std::size_t member) {
  const auto& process = *members_[member].process;
  process.signal(SIGSTOP);
  eventually([&] { return state_of(process.pid()) == 'T'; });
}

void etcd_cluster::resume(std::size_t member) { members_[member].process->signal(SIGCONT); }

void etcd_cluster::pause_all() {
  for (std::size_t i = 0; i < size(); ++i)
    pause(i);
}

void etcd_cluster::resume_all() {
  for (std::size_t i = 0; i < size(); ++i)
    if (members_[i].process) resume(i);
  for (std::size_t i = 0; i < size(); ++i)
    if (members_[i].process && !await_answer(i))
      throw std::runtime_error{"etcd does not go on:\n" + logs()};
}

std::size_t etcd_cluster::leader() const {
  std::size_t found = size();
  eventually([&] {
    for (std::size_t i = 0; i < size(); ++i) {
      if (!members_[i].process || state_of(members_[i].process->pid()) == 'T') continue;
      const auto said = json::parse(post(i, "/v3/maintenance/status", "{}"), nullptr, false);
      if (!said.is_object() || !said.contains("leader")) continue;
      if (said["leader"] == said["header"]["member_id"]) found = i;
    }
    return found < size();
  });
  if (found == size()) throw std::runtime_error{"etcd has no leader:\n" + logs()};
  return found;
}

bool etcd_cluster::await_answer(std::size_t member) const {
  if (options_.scheme == "https") return true;
  return eventually([&] {
           const auto said = post(member, "/v3/kv/range", json{{"key", base64("x")}}.dump());
           const bool ended = members_[member].process && !alive(members_[member].process->pid());
           return ended || said.find("revision") != std::string::npos;
         }) &&
         alive(members_[member].process->pid());
}

// ---- looking -----------------------------------------------------------------------------------

std::string etcd_cluster::post(std::size_t member, const std::string& path,
                               const std::string& body) const {
  int fd = -1;
  try {
    fd = connect_to({{}, members_[member].port});
  } catch (const std::system_error&) {
    return {};
  }
  const timeval limit{3, 0};
  ::setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  // By HTTP/1.0 an answer ends with its connection.
  const auto request = "POST " + path +
                       " HTTP/1.0\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" +
                       body;
  std::string got;
  if (::send(fd, request.data(), request.size(), MSG_NOSIGNAL) ==
      static_cast<ssize_t>(request.size())) {
    std::array<char, 16384> buffer;
    ssize_t count = 0;
    while ((count = ::recv(fd, buffer.data(), buffer.size(), 0)) > 0)
      got.append(buffer.data(), static_cast<std::size_t>(count));
  }
  ::close(fd);
  const auto head = got.find("\r\n\r\n");
  return head == std::string::npos ? std::string{} : got.substr(head + 4);
}

std::vector<std::string> etcd_cluster::ctl_command(std::vector<std::string> arguments) const {
  std::string endpoints;
  for (const auto& one : members_)
    endpoints += (endpoints.empty() ? "" : ",") + ("127.0.0.1:" + std::to_string(one.port));
  std::vector<std::string> command{"etcdctl", "--endpoints", endpoints};
  for (auto& one : arguments)
    command.push_back(std::move(one));
  return command;
}

std::string etcd_cluster::ctl(std::vector<std::string> arguments) const {
  const auto done =
      run_program({.args = ctl_command(std::move(arguments)), .env = {{"ETCDCTL_API", "3"}}});
  return done.out + done.err;
}

std::size_t etcd_cluster::keys(const std::string& prefix) const {
  auto asked = keys_with(prefix);
  asked["count_only"] = true;
  const auto said = json::parse(post(leader(), "/v3/kv/range", asked.dump()), nullptr, false);
  if (!said.is_object() || !said.contains("count")) return 0;
  return std::stoul(said["count"].get<std::string>());
}

void etcd_cluster::remove_keys(const std::string& prefix) const {
  const auto said = post(leader(), "/v3/kv/deleterange", keys_with(prefix).dump());
  if (said.find("revision") == std::string::npos) throw std::runtime_error{"not removed: " + said};
}

etcd_cluster& shared_etcd() {
  static etcd_cluster cluster;
  return cluster;
}

}  // namespace holdfast::test
