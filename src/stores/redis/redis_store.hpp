// The native Redis lock on one server.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/background.hpp"
#include "stores/redis/cluster/slot_map.hpp"
#include "stores/redis/connection_pool.hpp"
#include "stores/redis/promises.hpp"
#include "stores/store.hpp"

namespace holdfast::stores::redis {

// How many replicas have to have a grant before it counts, and how long that is waited for.
struct replica_rule {
  std::uint32_t count = 0;  // 0: none is waited for
  core::duration timeout = std::chrono::milliseconds{200};
};

struct redis_config {
  endpoint server;
  // Of a cluster: nodes to begin with, and how each is reached; `server` is not used.
  std::vector<node_address> seeds;
  std::function<endpoint(const node_address&)> endpoint_at;
  // How connections are made.
  std::function<std::shared_ptr<dialer>(endpoint)> make_dialer = redis::make_dialer;
  pool_limits limits;
  std::string prefix;
  bool hears_changes = false;       // of locks, from the server, on the connection for renewals
  bool share_with_foreign = false;  // leave the lock free now and then, for clients that poll
  replica_rule replicas;
  guarantees promises = promises_of_server(reach::network);
};

[[nodiscard]] std::unique_ptr<store> make_redis_store(
    redis_config config, std::shared_ptr<runtime::background> background);

}  // namespace holdfast::stores::redis
