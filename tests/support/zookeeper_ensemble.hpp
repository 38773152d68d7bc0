// Real ZooKeeper servers of a test's own (Debian: zookeeper, a JVM each).
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "support/process.hpp"
#include "support/temp_dir.hpp"

namespace holdfast::test {

// Starts as many servers, one alone or an ensemble, and waits until they serve; throws
// std::runtime_error with their logs if they do not. They take a second or two, so tests share
// them: each test uses a chroot of its own. Not thread-safe. They die with the thread that made
// this.
class zookeeper_ensemble {
 public:
  // The servers' tick, and the shortest session they grant.
  static constexpr std::chrono::milliseconds tick{200};
  static constexpr std::chrono::milliseconds session_min = 2 * tick;

  // quick: the servers do not wait for their disks, which a test never asks to survive.
  enum class disk : bool { quick, durable };
  explicit zookeeper_ensemble(std::size_t servers, disk with = disk::quick);
  zookeeper_ensemble(const zookeeper_ensemble&) = delete;
  zookeeper_ensemble& operator=(const zookeeper_ensemble&) = delete;
  ~zookeeper_ensemble();

  [[nodiscard]] std::size_t size() const noexcept { return servers_.size(); }
  // host:port,…
  [[nodiscard]] std::string hosts() const;
  [[nodiscard]] std::uint16_t port(std::size_t i) const { return servers_[i].client_port; }
  [[nodiscard]] std::string url(const std::string& chroot) const;

  // The index of the server that leads, or that is alone.
  [[nodiscard]] std::optional<std::size_t> leader() const;
  [[nodiscard]] bool serves(std::size_t i) const;
  [[nodiscard]] bool await_serving(std::size_t i) const;

  void kill(std::size_t i);
  void restart(std::size_t i);
  void pause(std::size_t i);
  void resume(std::size_t i);
  void pause_all();
  void resume_all();

 private:
  struct server {
    std::uint16_t client_port = 0;
    std::uint16_t quorum_port = 0;
    std::uint16_t election_port = 0;
    std::unique_ptr<child_process> process{};
  };

  void start(std::size_t i);
  [[nodiscard]] std::string folder(std::size_t i) const;
  // The answer to a four-letter word; empty if there is none.
  [[nodiscard]] std::string ask(std::size_t i, const std::string& word) const;
  [[nodiscard]] std::string logs() const;

  const disk disk_;
  temp_dir folder_;
  std::vector<server> servers_;
};

// A chroot that no other test uses.
[[nodiscard]] std::string fresh_chroot();

}  // namespace holdfast::test
