// The native Redis lock on one server.
#pragma once

#include <memory>

#include "runtime/background.hpp"
#include "stores/redis/link.hpp"
#include "stores/redis/promises.hpp"
#include "stores/store.hpp"

namespace holdfast::stores::redis {

struct redis_config {
  endpoint server;
  link_limits limits;
  std::string prefix;
  bool share_with_foreign = false;  // leave the lock free now and then, for clients that poll
  guarantees promises = promises_of_server(reach::network);
};

[[nodiscard]] std::unique_ptr<store> make_redis_store(
    redis_config config, std::shared_ptr<runtime::background> background);

}  // namespace holdfast::stores::redis
