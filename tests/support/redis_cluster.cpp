#include "support/redis_cluster.hpp"

#include <sstream>
#include <stdexcept>

#include "stores/redis/layout.hpp"
#include "support/process.hpp"

namespace holdfast::test {

namespace {

constexpr unsigned slots = 16384;

std::string ok(const std::string& said, std::string_view what) {
  if (said.starts_with("(error)")) throw std::runtime_error{std::string{what} + ": " + said};
  return said;
}

}  // namespace

redis_cluster::redis_cluster(const redis_cluster_options& options) : options_{options} {
  const auto count = options_.masters * (1 + options_.replicas);
  for (std::size_t i = 0; i < count; ++i) {
    auto each = options_.node;
    each.tcp = true;
    // The default is the port plus 10,000, which may be no port, or another's.
    bus_ports_.push_back(free_port());
    for (const auto& line :
         {std::string{"cluster-enabled yes"}, "cluster-port " + std::to_string(bus_ports_.back()),
          "cluster-node-timeout " + std::to_string(options_.node_timeout.count()),
          std::string{"cluster-replica-validity-factor 0"}, std::string{"repl-diskless-sync yes"},
          std::string{"repl-diskless-sync-delay 0"}}) {
      each.config.push_back(line);
    }
    servers_.push_back(std::make_unique<redis_server>(each));
  }
  begin();
}

void redis_cluster::begin() {
  for (std::size_t i = 0; i < options_.masters; ++i) {
    const auto first = i * slots / options_.masters;
    const auto last = (i + 1) * slots / options_.masters - 1;
    ok(servers_[i]->command(
           {"CLUSTER", "ADDSLOTSRANGE", std::to_string(first), std::to_string(last)}),
       "ADDSLOTSRANGE");
  }
  for (std::size_t i = 0; i < size(); ++i)
    ok(servers_[i]->command({"CLUSTER", "SET-CONFIG-EPOCH", std::to_string(i + 1)}), "EPOCH");
  // Each meets each: gossip alone would take seconds.
  for (std::size_t i = 0; i < size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      ok(servers_[i]->command({"CLUSTER", "MEET", "127.0.0.1", std::to_string(servers_[j]->port()),
                               std::to_string(bus_ports_[j])}),
         "MEET");
    }
  }
  const auto known = [&] {
    for (std::size_t i = 0; i < size(); ++i) {
      if (field(i, "cluster_known_nodes") != std::to_string(size())) return false;
    }
    return true;
  };
  if (!eventually(known)) throw std::runtime_error{"the nodes of a cluster do not meet"};
  for (std::size_t i = options_.masters; i < size(); ++i) {
    const auto of = (i - options_.masters) / options_.replicas;
    const auto id = id_of(of);
    const auto made = [&] { return servers_[i]->command({"CLUSTER", "REPLICATE", id}) == "OK"; };
    if (!eventually(made)) throw std::runtime_error{"a node does not become a replica"};
  }
  if (!eventually([&] { return all_serve(); })) {
    throw std::runtime_error{"a cluster does not begin to serve"};
  }
}

std::string redis_cluster::field(std::size_t i, const std::string& name) const {
  std::istringstream lines{servers_[i]->command({"CLUSTER", "INFO"})};
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with(name + ":")) continue;
    line.erase(0, name.size() + 1);
    if (line.ends_with('\r')) line.pop_back();
    return line;
  }
  return {};
}

bool redis_cluster::all_serve() const {
  for (std::size_t i = 0; i < size(); ++i) {
    if (field(i, "cluster_state") != "ok") return false;
    if (field(i, "cluster_slots_assigned") != std::to_string(slots)) return false;
    const bool replica = i >= options_.masters;
    if (replica && servers_[i]->info("replication", "master_link_status") != "up") return false;
    // Every node knows of every replica, or it would not let it be promoted.
    std::istringstream lines{servers_[i]->command({"CLUSTER", "NODES"})};
    std::size_t replicas = 0;
    for (std::string line; std::getline(lines, line);)
      replicas += line.find("slave") != std::string::npos ? 1 : 0;
    if (replicas != options_.masters * options_.replicas) return false;
  }
  return true;
}

std::string redis_cluster::url(const std::string& query) const {
  std::string text = options_.node.tls ? "rediss+cluster://" : "redis+cluster://";
  for (std::size_t i = 0; i < size(); ++i)
    text += (i == 0 ? "" : ",") + std::string{"127.0.0.1:"} + std::to_string(servers_[i]->port());
  const auto ca = options_.node.tls ? "ca=" + options_.node.tls->authority : std::string{};
  const auto all = ca + (ca.empty() || query.empty() ? "" : "&") + query;
  return all.empty() ? text : text + "?" + all;
}

std::string redis_cluster::id_of(std::size_t i) const {
  return servers_[i]->command({"CLUSTER", "MYID"});
}

unsigned redis_cluster::slot_of(std::string_view key) { return stores::redis::hash_slot(key); }

std::size_t redis_cluster::master_of(std::string_view key) const {
  for (std::size_t i = 0; i < size(); ++i) {
    if (servers_[i]->pid() <= 0) continue;
    // A node that may not run it says where: "MOVED slot host:port".
    const auto said = servers_[i]->command({"EXISTS", std::string{key}});
    if (!said.starts_with("(error) MOVED")) return i;
    const auto port = said.substr(said.rfind(':') + 1);
    for (std::size_t j = 0; j < size(); ++j) {
      if (std::to_string(servers_[j]->port()) == port) return j;
    }
  }
  throw std::runtime_error{"nobody has the key"};
}

std::string redis_cluster::on_master_of(std::string_view key,
                                        const std::vector<std::string>& words) const {
  return servers_[master_of(key)]->command(words);
}

void redis_cluster::begin_move(unsigned slot, std::size_t from, std::size_t to) const {
  const auto text = std::to_string(slot);
  ok(servers_[to]->command({"CLUSTER", "SETSLOT", text, "IMPORTING", id_of(from)}), "IMPORTING");
  ok(servers_[from]->command({"CLUSTER", "SETSLOT", text, "MIGRATING", id_of(to)}), "MIGRATING");
}

void redis_cluster::move_keys(unsigned slot, std::size_t from, std::size_t to) const {
  for (;;) {
    std::istringstream keys{
        servers_[from]->command({"CLUSTER", "GETKEYSINSLOT", std::to_string(slot), "100"})};
    std::vector<std::string> words{
        "MIGRATE", "127.0.0.1", std::to_string(servers_[to]->port()), "", "0", "5000", "KEYS"};
    const auto fixed = words.size();
    for (std::string key; std::getline(keys, key);)
      words.push_back(key);
    if (words.size() == fixed) return;
    const auto said = servers_[from]->command(words);
    // A key may have expired meanwhile.
    if (said != "OK" && said != "NOKEY") throw std::runtime_error{"MIGRATE: " + said};
  }
}

void redis_cluster::end_move(unsigned slot, std::size_t to) const {
  // The new one first, or requests would be sent to and fro.
  ok(servers_[to]->command({"CLUSTER", "SETSLOT", std::to_string(slot), "NODE", id_of(to)}),
     "NODE");
  for (std::size_t i = 0; i < options_.masters; ++i) {
    if (i == to || servers_[i]->pid() <= 0) continue;
    ok(servers_[i]->command({"CLUSTER", "SETSLOT", std::to_string(slot), "NODE", id_of(to)}),
       "NODE");
  }
}

void redis_cluster::move(unsigned slot, std::size_t to) {
  const std::string tag = "{" + stores::redis::slot_tag(slot) + "}";
  const auto from = master_of(tag);
  if (from == to) return;
  begin_move(slot, from, to);
  move_keys(slot, from, to);
  end_move(slot, to);
}

bool redis_cluster::await_promotion(std::size_t i) const {
  return eventually([&] { return servers_[i]->info("replication", "role") == "master"; });
}

}  // namespace holdfast::test
