// The store behind `local:`: a Redis like any other, but for making sure that it runs.
#pragma once

#include <memory>

#include "runtime/background.hpp"
#include "stores/redis/redis_store.hpp"
#include "stores/store.hpp"

namespace holdfast::stores::local {

// The server and how to connect to it, and what it promises.
[[nodiscard]] redis::redis_config with_local_server(redis::redis_config config);

// The server, how to connect to it and what it promises are filled in; the rest is as given.
[[nodiscard]] std::unique_ptr<store> make_local_store(
    redis::redis_config config, std::shared_ptr<runtime::background> background);

}  // namespace holdfast::stores::local
