#include "client/open_store.hpp"

#include <utility>

#include "client/components.hpp"
#include "runtime/password_file.hpp"
#include "runtime/socket.hpp"
#include "stores/local/local_store.hpp"
#include "stores/memory/memory_store.hpp"
#include "stores/redis/master_finder.hpp"
#include "stores/redis/plain_replicas.hpp"
#include "stores/redis/redis_store.hpp"
#include "stores/redis/sentinels.hpp"
#include "stores/redlock/redlock_store.hpp"

namespace holdfast::detail {

namespace {

using stores::redis::redis_config;

std::shared_ptr<runtime::tls_context> tls_of(const store_url& url) {
  return url.has_tls ? std::make_shared<runtime::tls_context>(url.tls) : nullptr;
}

redis_config common(const store_url& url) {
  redis_config config;
  config.hears_changes = true;
  config.limits.connections = url.connections;
  config.limits.spin = url.spin;
  config.share_with_foreign = url.share_with_foreign;
  config.prefix = url.prefix;
  config.replicas = {url.replicas_awaited, url.replica_timeout};
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

redis_config on_cluster(const store_url& url) {
  auto config = common(url);
  for (const auto& one : url.nodes)
    config.seeds.push_back({one.host, one.port});
  config.endpoint_at = [url, tls = tls_of(url)](const stores::redis::node_address& at) {
    auto where = tcp_endpoint(url, at.host, at.port, tls);
    where.in_cluster = true;
    return where;
  };
  config.promises = stores::redis::promises_of_cluster();
  return config;
}

// Each of the nodes that the URL names, as a server.
std::vector<stores::redis::endpoint> endpoints(const store_url& url) {
  std::vector<stores::redis::endpoint> all;
  const auto tls = tls_of(url);
  for (const auto& one : url.nodes)
    all.push_back(tcp_endpoint(url, one.host, one.port, tls));
  return all;
}

std::unique_ptr<stores::redis::deployment> deployment_of(const store_url& url) {
  auto all = endpoints(url);
  if (url.what == store_url::kind::replicas) {
    std::vector<core::server_address> addresses;
    for (const auto& one : url.nodes)
      addresses.push_back({one.host, one.port});
    return stores::redis::make_plain_replicas(std::move(all), std::move(addresses));
  }
  for (auto& one : all) {
    one.wanted = stores::redis::endpoint::role::sentinel;
    one.database = 0;
    one.user = url.sentinel_user;
    one.password.clear();
    one.password_file = url.sentinel_password_file;
  }
  return stores::redis::make_sentinels(std::move(all), url.master);
}

redis_config on_master(const store_url& url) {
  auto config = common(url);
  const auto tls = tls_of(url);
  auto finder = std::make_shared<stores::redis::master_finder>(
      deployment_of(url), [url, tls](const core::server_address& to) {
        return tcp_endpoint(url, to.host, to.port, tls);
      });
  config.server.refuse_voters = true;
  config.make_dialer = [finder = std::move(finder)](auto terms) {
    return stores::redis::make_master_dialer(finder, std::move(terms));
  };
  config.promises = stores::redis::promises_of_master();
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
  config.nodes = endpoints(url);
  config.prefix = url.prefix;
  config.epoch = url.epoch;
  config.node_timeout = url.node_timeout;
  config.max_ttl = url.max_ttl;
  config.spin = url.spin;
  return config;
}

stores::redis::endpoint server_of(const store_url& url) {
  if (url.what == store_url::kind::local) {
    return stores::local::with_local_server(common(url)).server;
  }
  return url.what == store_url::kind::unix_socket ? on_unix(url).server : on_tcp(url).server;
}

result<void> check_files(const store_url& url) {
  if (const auto tls = tls_of(url)) {
    if (auto loaded = tls->current(); !loaded) return fail(std::move(loaded.error()));
  }
  for (const auto& file : {url.password_file, url.sentinel_password_file}) {
    if (file.empty()) continue;
    if (auto read = runtime::read_password(file); !read) return fail(std::move(read.error()));
  }
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
    case store_url::kind::cluster:
      return stores::redis::make_redis_store(on_cluster(url), std::move(background));
    case store_url::kind::replicas:
    case store_url::kind::sentinel:
      return stores::redis::make_redis_store(on_master(url), std::move(background));
    case store_url::kind::tcp:
      break;
  }
  return stores::redis::make_redis_store(on_tcp(url), std::move(background));
}

}  // namespace holdfast::detail
