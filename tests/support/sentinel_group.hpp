// A real master with replicas and Sentinels, on loopback.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "support/redis_server.hpp"

namespace holdfast::test {

struct sentinel_group_options {
  std::size_t replicas = 1;
  std::size_t sentinels = 3;
  redis_server_options server{};    // of master and replicas; always on TCP
  redis_server_options sentinel{};  // always on TCP
  // After which silence a Sentinel takes a server for dead.
  std::chrono::milliseconds down_after{1500};
  // What Sentinels are told of servers: lines of sentinel.conf.
  std::vector<std::string> monitor{};
};

// Servers first: server 0 is the master at the start. Sentinels know of each other and of the
// replicas from their configuration, so that the group is complete as soon as it answers, and look
// more often than usual. A failover takes a second when it is asked for, and a few when Sentinels
// find that the master is gone. Not thread-safe.
class sentinel_group {
 public:
  explicit sentinel_group(sentinel_group_options options = {});

  static constexpr const char* master_name = "holdfast-test";

  [[nodiscard]] std::string url(const std::string& query = {}) const;
  // The same servers without Sentinels.
  [[nodiscard]] std::string plain_url(const std::string& query = {}) const;
  [[nodiscard]] redis_server& server(std::size_t i) { return *servers_[i]; }
  [[nodiscard]] redis_server& sentinel(std::size_t i) { return *sentinels_[i]; }
  [[nodiscard]] std::size_t servers() const noexcept { return servers_.size(); }
  [[nodiscard]] std::size_t sentinels() const noexcept { return sentinels_.size(); }

  // Whom this Sentinel takes for the master: the server's number.
  [[nodiscard]] std::size_t master_of(std::size_t sentinel) const;
  [[nodiscard]] bool await_master(std::size_t server);
  // "master" or "slave"; empty while Sentinels are changing it, which ends its connections.
  [[nodiscard]] std::string role_of(std::size_t server) const;
  // Waits until every replica of this server has all that it wrote.
  [[nodiscard]] bool await_replicated(std::size_t master);
  // By hand: the Sentinels make another server the master, and this one its replica. Returns the
  // new one.
  std::size_t fail_over();

 private:
  const sentinel_group_options options_;
  std::vector<std::unique_ptr<redis_server>> servers_;
  std::vector<std::unique_ptr<redis_server>> sentinels_;
};

// A master and replicas that nobody watches. Server 0 is the master.
[[nodiscard]] std::vector<std::unique_ptr<redis_server>> start_replicated(
    std::size_t replicas, redis_server_options each = {});

}  // namespace holdfast::test
