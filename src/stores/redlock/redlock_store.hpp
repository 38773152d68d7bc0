// A fenced lock on a majority of independent Redis servers. docs/redlock.md
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/background.hpp"
#include "stores/redis/dialer.hpp"
#include "stores/store.hpp"

namespace holdfast::stores::redlock {

struct redlock_config {
  std::vector<redis::endpoint> nodes;
  // How connections to them are made.
  std::function<std::shared_ptr<redis::dialer>(redis::endpoint)> make_dialer = redis::make_dialer;
  std::string prefix;
  unsigned epoch = 1;
  // How long one node has for an answer before it is not waited for.
  core::duration node_timeout = std::chrono::milliseconds{50};
  // The longest TTL on this set, and how long a node that lost data may not vote.
  core::duration max_ttl = std::chrono::seconds{60};
  core::duration spin = std::chrono::microseconds{60};
};

[[nodiscard]] std::unique_ptr<store> make_redlock_store(
    redlock_config config, std::shared_ptr<runtime::background> background);

}  // namespace holdfast::stores::redlock
