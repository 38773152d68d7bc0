// Redlock as people write it by hand: a negative control. Nodes are asked one after the other, the
// clock is not looked at again, a failed attempt is given back only where it was granted, the token
// is the highest of plain counters, a lease is extended without asking whose it is, and a node that
// restarted empty votes at once.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "support/raw_redis.hpp"

namespace holdfast::test {

// Not thread-safe.
class naive_redlock {
 public:
  naive_redlock(std::vector<endpoint> nodes, std::string key,
                std::chrono::milliseconds node_timeout = std::chrono::seconds{5})
      : nodes_{std::move(nodes)}, key_{std::move(key)}, node_timeout_{node_timeout} {}

  struct held {
    std::string value;
    std::int64_t token = 0;
    std::vector<std::size_t> granted_by;
  };

  std::optional<held> lock(std::chrono::milliseconds ttl) {
    held mine{std::to_string(std::random_device{}()) + std::to_string(++attempts_), 0, {}};
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      if (take(mine, i, ttl)) mine.granted_by.push_back(i);
    }
    if (mine.granted_by.size() > nodes_.size() / 2) return mine;
    unlock(mine);
    return std::nullopt;
  }

  // Its vote of one node.
  bool take(held& mine, std::size_t node, std::chrono::milliseconds ttl) const {
    try {
      raw_redis redis{nodes_[node], node_timeout_};
      const auto said =
          redis.command({"SET", key_, mine.value, "NX", "PX", std::to_string(ttl.count())});
      if (said.type == reply::kind::nil) return false;
      mine.token = std::max(mine.token, redis.command({"INCR", key_ + ":token"}).integer);
      return true;
    } catch (const std::exception&) {  // no answer: as if it had not been granted
      return false;
    }
  }

  // Looks, and then deletes: in between it may have become somebody else's.
  void unlock(const held& mine) const {
    for (const auto node : mine.granted_by) {
      try {
        raw_redis redis{nodes_[node], node_timeout_};
        if (redis.command({"GET", key_}).text == mine.value) redis.command({"DEL", key_});
      } catch (const std::exception&) {  // no answer: as if it had been done
      }
    }
  }

  // True if it believes that it holds the lock for as long again.
  [[nodiscard]] bool renew(std::chrono::milliseconds ttl) const {
    std::size_t extended = 0;
    for (const auto& node : nodes_) {
      raw_redis redis{node, node_timeout_};
      const auto said = redis.command({"PEXPIRE", key_, std::to_string(ttl.count())});
      extended += said.integer == 1 ? 1 : 0;
    }
    return extended > nodes_.size() / 2;
  }

 private:
  const std::vector<endpoint> nodes_;
  const std::string key_;
  const std::chrono::milliseconds node_timeout_;
  int attempts_ = 0;
};

}  // namespace holdfast::test
