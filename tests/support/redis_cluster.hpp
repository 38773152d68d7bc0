// A real Redis cluster on the loopback address.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "support/redis_server.hpp"

namespace holdfast::test {

struct redis_cluster_options {
  std::size_t masters = 3;
  std::size_t replicas = 0;  // of each master
  // After so long without a sign a node is taken for dead. The default is for tests in which none
  // dies: a busy machine must not look like one that failed.
  std::chrono::milliseconds node_timeout{60'000};
  redis_server_options node{};
};

// Made and stopped as its servers are: see redis_server. Masters come first: 0, 1, 2; then the
// replicas of 0, and so on. Not thread-safe.
class redis_cluster {
 public:
  // Returns when every node says that the cluster serves, and replicas have caught up.
  explicit redis_cluster(const redis_cluster_options& options = {});

  [[nodiscard]] std::size_t size() const noexcept { return servers_.size(); }
  [[nodiscard]] redis_server& operator[](std::size_t i) { return *servers_[i]; }
  [[nodiscard]] std::string url(const std::string& query = {}) const;
  [[nodiscard]] std::string id_of(std::size_t i) const;

  // Of this key, as the nodes see it: which of the servers is its master now. Asks one that runs.
  [[nodiscard]] std::size_t master_of(std::string_view key) const;
  [[nodiscard]] static unsigned slot_of(std::string_view key);
  // One command on the master of this key.
  std::string on_master_of(std::string_view key, const std::vector<std::string>& words) const;

  // Moves a slot as redis-cli --cluster reshard does, with everything in it. The steps:
  void begin_move(unsigned slot, std::size_t from, std::size_t to) const;
  void move_keys(unsigned slot, std::size_t from, std::size_t to) const;
  void end_move(unsigned slot, std::size_t to) const;
  void move(unsigned slot, std::size_t to);

  // Waits until this server says that it is a master, by promotion.
  [[nodiscard]] bool await_promotion(std::size_t i) const;

 private:
  void begin();
  [[nodiscard]] bool all_serve() const;
  [[nodiscard]] std::string field(std::size_t i, const std::string& name) const;

  const redis_cluster_options options_;
  std::vector<std::uint16_t> bus_ports_;
  std::vector<std::unique_ptr<redis_server>> servers_;
};

}  // namespace holdfast::test
