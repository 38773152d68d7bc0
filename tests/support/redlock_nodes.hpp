// A set of real redis-servers for redlock://.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "support/redis_server.hpp"

namespace holdfast::test {

struct redlock_nodes_options {
  redis_server_options node{};
  std::string query = "node_timeout=1000";  // so that a slow machine is not taken for a hung node
  bool init = true;                         // let them vote at once
};

// The field of a node's record that is the counter of the one lock it has had; empty: none yet.
[[nodiscard]] std::string counter_field(redis_server& node);

// Not thread-safe.
class redlock_nodes {
 public:
  explicit redlock_nodes(std::size_t count, const redlock_nodes_options& options = {});

  // Lets them vote at once, as the set of this URL, and forgets that tokens may have been granted
  // before: without that, acquires are raised for a second or more.
  void begin(const std::string& url);
  [[nodiscard]] std::size_t size() const noexcept { return servers_.size(); }
  [[nodiscard]] redis_server& operator[](std::size_t i) { return *servers_[i]; }
  [[nodiscard]] std::string url() const { return url_with(query_); }
  // With other options than those given.
  [[nodiscard]] std::string url_with(const std::string& query) const;
  [[nodiscard]] std::string name(std::size_t i) const;  // as errors name it
  // How often a command ran on any of them.
  [[nodiscard]] std::uint64_t calls_of_all(const std::string& command_name) const;
  [[nodiscard]] std::vector<endpoint> where() const;
  // How many hold this key.
  [[nodiscard]] std::size_t holding(const std::string& key) const;
  // Waits until all do, for one owner: right after a grant no more than a majority need to,
  // whichever that is.
  [[nodiscard]] bool await_all_holding(const std::string& key) const;
  [[nodiscard]] bool await_none_holding(const std::string& key) const;

 private:
  const std::string query_;
  const std::optional<server_tls> tls_;
  std::vector<std::unique_ptr<redis_server>> servers_;
};

}  // namespace holdfast::test
