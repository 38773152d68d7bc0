// A real etcd cluster of a test's own.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "support/process.hpp"
#include "support/temp_dir.hpp"

namespace holdfast::test {

struct etcd_cluster_options {
  std::size_t members = 3;
  std::vector<std::string> arguments{};  // of each etcd, besides where it listens
  std::string scheme = "http";           // https: with certificates among the arguments
};

// Starts etcd servers on free ports of the loopback address, with their data in memory, and waits
// until they have a leader; throws std::runtime_error with their logs if they do not get there. Not
// thread-safe, except for post() and ctl().
//
// The servers die with the *thread* that made them, so make it in the thread that outlives its use.
class etcd_cluster {
 public:
  explicit etcd_cluster(etcd_cluster_options options = {});
  etcd_cluster(const etcd_cluster&) = delete;
  etcd_cluster& operator=(const etcd_cluster&) = delete;
  ~etcd_cluster() = default;

  // etcd://127.0.0.1:port,…
  [[nodiscard]] std::string url() const;
  [[nodiscard]] std::size_t size() const noexcept { return members_.size(); }
  [[nodiscard]] std::uint16_t port(std::size_t member) const { return members_[member].port; }

  // What is done to one: killed, started again with its data, stopped in its tracks, continued.
  void kill9(std::size_t member);
  void restart(std::size_t member);
  // The same without waiting for its answer: it may want a user.
  void start_again(std::size_t member) { start(member, false); }
  void pause(std::size_t member);
  void resume(std::size_t member);
  void pause_all();
  // And waits until the cluster answers.
  void resume_all();

  // Which one leads. Waits until one does.
  [[nodiscard]] std::size_t leader() const;
  // Waits until this one answers what only a majority can.
  [[nodiscard]] bool await_answer(std::size_t member) const;

  // One request to the gateway of a member; the body of the answer. Empty: no answer in time.
  [[nodiscard]] std::string post(std::size_t member, const std::string& path,
                                 const std::string& body) const;
  // etcdctl with these arguments, on all members; what it prints.
  [[nodiscard]] std::string ctl(std::vector<std::string> arguments) const;
  [[nodiscard]] std::vector<std::string> ctl_command(std::vector<std::string> arguments) const;

  // How many keys begin so, and removing them all.
  [[nodiscard]] std::size_t keys(const std::string& prefix) const;
  void remove_keys(const std::string& prefix) const;

 private:
  struct running {
    std::uint16_t port = 0;
    std::uint16_t peer_port = 0;
    std::unique_ptr<child_process> process{};
  };
  void start(std::size_t member, bool is_new);
  [[nodiscard]] bool start_all();
  [[nodiscard]] std::string logs() const;

  const etcd_cluster_options options_;
  temp_dir folder_;
  std::vector<running> members_;
};

// A cluster that all tests of this process share, all its members running. Each takes a prefix of
// its own: fresh_prefix().
[[nodiscard]] etcd_cluster& shared_etcd();
[[nodiscard]] std::string fresh_prefix();

}  // namespace holdfast::test
