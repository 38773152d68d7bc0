#include "support/redlock_nodes.hpp"

#include <set>
#include <stdexcept>

#include <holdfast/redlock.hpp>

#include "support/process.hpp"

namespace holdfast::test {

redlock_nodes::redlock_nodes(std::size_t count, const redlock_nodes_options& options)
    : query_{options.query}, tls_{options.node.tls} {
  auto each = options.node;
  each.tcp = true;
  for (std::size_t i = 0; i < count; ++i)
    servers_.push_back(std::make_unique<redis_server>(each));
  if (options.init) begin(url());
}

void redlock_nodes::begin(const std::string& url) {
  // A slow machine may take its time.
  const auto ok = redlock::init(url, std::chrono::seconds{20});
  if (!ok) throw std::runtime_error{"redlock::init: " + ok.error().message};
  for (const auto& one : servers_)
    (void)one->command({"HDEL", "holdfast:{redlock}:node", "floor"});
}

std::string redlock_nodes::url_with(const std::string& query) const {
  std::string text = tls_ ? "redlock+tls://" : "redlock://";
  for (std::size_t i = 0; i < servers_.size(); ++i)
    text += (i == 0 ? "" : ",") + name(i);
  const auto options = (tls_ ? "ca=" + tls_->authority + "&" : "") + query;
  return options.empty() ? text : text + "?" + options;
}

std::string redlock_nodes::name(std::size_t i) const {
  return "127.0.0.1:" + std::to_string(servers_[i]->port());
}

std::uint64_t redlock_nodes::calls_of_all(const std::string& command_name) const {
  std::uint64_t sum = 0;
  for (const auto& one : servers_)
    sum += one->calls_of(command_name);
  return sum;
}

std::string counter_field(redis_server& node) {
  const auto fields = node.command({"HKEYS", "holdfast:{redlock}:node"});
  const auto at = fields.find("c:");
  return at == std::string::npos ? "" : fields.substr(at, fields.find('\n', at) - at);
}

std::vector<endpoint> redlock_nodes::where() const {
  std::vector<endpoint> all;
  for (const auto& one : servers_)
    all.push_back(one->where());
  return all;
}

bool redlock_nodes::await_all_holding(const std::string& key) const {
  return eventually([&] {
    std::set<std::string> owners;
    for (const auto& one : servers_)
      owners.insert(one->command({"GETRANGE", key, "0", "31"}));
    return owners.size() == 1 && !owners.begin()->empty();
  });
}

bool redlock_nodes::await_none_holding(const std::string& key) const {
  return eventually([&] { return holding(key) == 0; });
}

std::size_t redlock_nodes::holding(const std::string& key) const {
  std::size_t count = 0;
  for (const auto& one : servers_)
    count += one->command({"EXISTS", key}) == "1" ? 1 : 0;
  return count;
}

}  // namespace holdfast::test
