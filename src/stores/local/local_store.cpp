#include "stores/local/local_store.hpp"

#include <utility>

#include "runtime/socket.hpp"
#include "stores/local/local_server.hpp"

namespace holdfast::stores::local {

namespace {

guarantees promises() {
  auto all = redis::promises_of_server(redis::reach::this_host);
  all.lock_survives_server_crash = true;
  all.summary =
      "a private Redis server of this user on this host: exclusion between the user's processes "
      "here, also across a crash of that server";
  return all;
}

}  // namespace

redis::redis_config with_local_server(redis::redis_config config) {
  auto server = std::make_shared<local_server>();
  config.server.node = "local: (" + escape(server->socket_path()) + ")";
  // Before each connection, because the server may have died since the last one.
  config.server.connect = [server](core::time_point until) -> result<runtime::unique_fd> {
    if (auto ok = server->ensure_running(until); !ok) return fail(std::move(ok.error()));
    return runtime::connect_unix(server->socket_path(), until);
  };
  config.promises = promises();
  return config;
}

std::unique_ptr<store> make_local_store(redis::redis_config config,
                                        std::shared_ptr<runtime::background> background) {
  return redis::make_redis_store(with_local_server(std::move(config)), std::move(background));
}

}  // namespace holdfast::stores::local
