#include "client/open_store.hpp"

#include <utility>

#include "client/components.hpp"
#include "runtime/password_file.hpp"
#include "runtime/socket.hpp"
#include "stores/local/local_store.hpp"
#include "stores/memory/memory_store.hpp"
#include "stores/redis/redis_store.hpp"
#include "stores/redlock/redlock_store.hpp"

namespace holdfast::detail {

namespace {

using stores::redis::redis_config;

std::shared_ptr<runtime::tls_context> tls_of(const store_url& url) {
  return url.has_tls ? std::make_shared<runtime::tls_context>(url.tls) : nullptr;
}

redis_config common(const store_url& url) {
  redis_config config;
  config.limits.connections = url.connections;
  config.limits.spin = url.spin;
  config.share_with_foreign = url.share_with_foreign;
  config.prefix = url.prefix;
  config.server.user = url.user;
  config.server.password = url.password;
  config.server.password_file = url.password_file;
  config.server.database = url.database;
  return config;
}

stores::redis::endpoint tcp_endpoint(const store_url& url, const std::string& host,
                                     std::uint16_t port,
                                     std::shared_ptr<runtime::tls_context> tls) {
  stores::redis::endpoint where;
  const bool is_v6 = host.find(':') != std::string::npos;
  where.node = escape(is_v6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
  where.connect = [host, port](core::time_point until) {
    return runtime::connect_tcp(host, port, until);
  };
  where.host = host;
  where.tls = std::move(tls);
  where.user = url.user;
  where.password = url.password;
  where.password_file = url.password_file;
  where.database = url.database;
  return where;
}

redis_config on_tcp(const store_url& url) {
  auto config = common(url);
  config.server = tcp_endpoint(url, url.host, url.port, tls_of(url));
  config.server.refuse_voters = true;
  return config;
}

redis_config on_unix(const store_url& url) {
  auto config = common(url);
  config.server.node = escape(url.path);
  config.server.refuse_voters = true;
  config.server.connect = [path = url.path](core::time_point until) {
    return runtime::connect_unix(path, until);
  };
  config.promises = stores::redis::promises_of_server(stores::redis::reach::this_host);
  return config;
}

stores::component_config component_config_of(const store_url& url) {
  stores::component_config config;
  for (const auto& one : url.nodes)
    config.servers.push_back({one.host, one.port});
  config.user = url.user;
  config.password = url.password;
  config.password_file = url.password_file;
  config.has_tls = url.has_tls;
  config.tls = url.tls;
  config.prefix = url.prefix;
  config.chroot = url.path;
  config.tick = url.tick;
  config.open_to_all = url.open_to_all;
  return config;
}

}  // namespace

stores::redlock::redlock_config redlock_config_of(const store_url& url) {
  stores::redlock::redlock_config config;
  const auto tls = tls_of(url);
  for (const auto& one : url.nodes)
    config.nodes.push_back(tcp_endpoint(url, one.host, one.port, tls));
  config.prefix = url.prefix;
  config.epoch = url.epoch;
  config.node_timeout = url.node_timeout;
  config.max_ttl = url.max_ttl;
  config.spin = url.spin;
  return config;
}

result<void> check_files(const store_url& url) {
  if (const auto tls = tls_of(url)) {
    if (auto loaded = tls->current(); !loaded) return fail(std::move(loaded.error()));
  }
  if (url.password_file.empty()) return {};
  if (auto read = runtime::read_password(url.password_file); !read)
    return fail(std::move(read.error()));
  return {};
}

result<std::unique_ptr<stores::store>> open_store(const store_url& url,
                                                  std::shared_ptr<runtime::background> background) {
  switch (url.what) {
    case store_url::kind::memory:
      return stores::memory::make_memory_store(url.name);
    case store_url::kind::local:
      return stores::local::make_local_store(common(url), std::move(background));
    case store_url::kind::unix_socket:
      return stores::redis::make_redis_store(on_unix(url), std::move(background));
    case store_url::kind::redlock:
      return stores::redlock::make_redlock_store(redlock_config_of(url), std::move(background));
    case store_url::kind::etcd:
    case store_url::kind::zookeeper: {
      const bool is_etcd = url.what == store_url::kind::etcd;
      const auto found = find_component(is_etcd ? "etcd" : "zookeeper");
      if (!found) return fail(found.error());
      return (*found)->open(component_config_of(url), std::move(background));
    }
    case store_url::kind::tcp:
      break;
  }
  return stores::redis::make_redis_store(on_tcp(url), std::move(background));
}

}  // namespace holdfast::detail
