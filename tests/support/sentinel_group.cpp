#include "support/sentinel_group.hpp"

#include <stdexcept>

#include "support/process.hpp"

namespace holdfast::test {

namespace {

std::string at(const redis_server& one) { return "127.0.0.1:" + std::to_string(one.port()); }

std::string list_of(const std::vector<std::unique_ptr<redis_server>>& all) {
  std::string text;
  for (const auto& one : all)
    text += (text.empty() ? "" : ",") + at(*one);
  return text;
}

std::string with_options(std::string url, const redis_server_options& on,
                         const std::string& query) {
  const auto ca = on.tls ? "ca=" + on.tls->authority : "";
  const auto all = ca + (ca.empty() || query.empty() ? "" : "&") + query;
  return all.empty() ? url : url + "?" + all;
}

// Forty hexadecimal digits, as Sentinels are called.
std::string id_of(std::size_t i) { return std::string(39, 'a') + std::to_string(i % 10); }

}  // namespace

std::vector<std::unique_ptr<redis_server>> start_replicated(std::size_t replicas,
                                                            redis_server_options each) {
  each.tcp = true;
  // A replica that is new is served at once, and one that is behind says so soon.
  for (const auto* line : {"repl-diskless-sync yes", "repl-diskless-sync-delay 0",
                           "repl-ping-replica-period 1", "replica-announce-ip 127.0.0.1"})
    each.config.emplace_back(line);
  if (each.tls) each.config.emplace_back("tls-replication yes");
  if (!each.password.empty()) each.config.push_back("masterauth " + each.password);
  std::vector<std::unique_ptr<redis_server>> all;
  all.push_back(std::make_unique<redis_server>(each));
  each.config.push_back("replicaof 127.0.0.1 " + std::to_string(all.front()->port()));
  for (std::size_t i = 0; i < replicas; ++i)
    all.push_back(std::make_unique<redis_server>(each));
  for (std::size_t i = 1; i < all.size(); ++i) {
    const bool linked =
        eventually([&] { return all[i]->info("replication", "master_link_status") == "up"; });
    if (!linked) throw std::runtime_error{"a replica does not find its master"};
  }
  return all;
}

sentinel_group::sentinel_group(sentinel_group_options options)
    : options_{std::move(options)}, servers_{start_replicated(options_.replicas, options_.server)} {
  const std::string name{master_name};
  std::vector<std::uint16_t> ports;
  for (std::size_t i = 0; i < options_.sentinels; ++i)
    ports.push_back(free_port());
  for (std::size_t i = 0; i < options_.sentinels; ++i) {
    auto one = options_.sentinel;
    one.tcp = true;
    one.sentinel = true;
    one.port = ports[i];
    const auto quorum = std::to_string(options_.sentinels / 2 + 1);
    const auto master = std::to_string(servers_.front()->port());
    for (const auto& line :
         {"sentinel myid " + id_of(i),
          "sentinel monitor " + name + " 127.0.0.1 " + master + " " + quorum,
          "sentinel down-after-milliseconds " + name + " " +
              std::to_string(options_.down_after.count()),
          "sentinel failover-timeout " + name + " 5000", "sentinel parallel-syncs " + name + " 5"})
      one.config.push_back(line);
    if (one.tls) one.config.emplace_back("tls-replication yes");
    for (const auto& line : options_.monitor)
      one.config.push_back(line);
    for (std::size_t k = 1; k < servers_.size(); ++k)
      one.config.push_back("sentinel known-replica " + name + " 127.0.0.1 " +
                           std::to_string(servers_[k]->port()));
    for (std::size_t k = 0; k < options_.sentinels; ++k) {
      if (k == i) continue;
      one.config.push_back("sentinel known-sentinel " + name + " 127.0.0.1 " +
                           std::to_string(ports[k]) + " " + id_of(k));
    }
    sentinels_.push_back(std::make_unique<redis_server>(one));
  }
  // Pings stay as they are: what Sentinels think of a replica is valid for five of them.
  for (const auto& one : sentinels_)
    (void)one->command({"SENTINEL", "DEBUG", "info-period", "500", "ask-period", "100",
                        "publish-period", "200",
                        // A machine that is too busy for a while is no reason to wait for long.
                        "tilt-trigger", "60000"});
}

std::string sentinel_group::url(const std::string& query) const {
  const auto scheme = options_.server.tls ? "rediss+sentinel://" : "redis+sentinel://";
  return with_options(scheme + list_of(sentinels_) + "/" + master_name, options_.server, query);
}

std::string sentinel_group::plain_url(const std::string& query) const {
  return with_options((options_.server.tls ? "rediss://" : "redis://") + list_of(servers_),
                      options_.server, query);
}

std::size_t sentinel_group::master_of(std::size_t sentinel) const {
  const auto said =
      sentinels_[sentinel]->command({"SENTINEL", "GET-MASTER-ADDR-BY-NAME", master_name});
  for (std::size_t i = 0; i < servers_.size(); ++i) {
    if (said.find(std::to_string(servers_[i]->port())) != std::string::npos) return i;
  }
  return servers_.size();
}

bool sentinel_group::await_master(std::size_t server) {
  return eventually([&] {
    for (std::size_t i = 0; i < sentinels_.size(); ++i) {
      if (sentinels_[i]->pid() > 0 && master_of(i) != server) return false;
    }
    return true;
  });
}

std::string sentinel_group::role_of(std::size_t server) const {
  try {
    return servers_[server]->info("replication", "role");
  } catch (const std::exception&) {
    return {};
  }
}

bool sentinel_group::await_replicated(std::size_t master) {
  const auto offset = std::stoull(servers_[master]->info("replication", "master_repl_offset"));
  return eventually([&] {
    for (std::size_t i = 0; i < servers_.size(); ++i) {
      if (i == master || servers_[i]->pid() <= 0) continue;
      const auto has = servers_[i]->info("replication", "slave_repl_offset");
      if (has.empty() || std::stoull(has) < offset) return false;
    }
    return true;
  });
}

std::size_t sentinel_group::fail_over() {
  const auto before = master_of(0);
  const bool begun = eventually([&] {
    return sentinels_.front()->command({"SENTINEL", "FAILOVER", master_name}) == "OK";
  });
  if (!begun || !eventually([&] { return master_of(0) != before; }))
    throw std::runtime_error{"the Sentinels do not fail over"};
  return master_of(0);
}

}  // namespace holdfast::test
