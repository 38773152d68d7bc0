#include "sim/node.hpp"

#include <algorithm>

#include "core/types.hpp"
#include "sim/network.hpp"

namespace holdfast::sim {

void node::new_run() {
  const auto high = ids_.bits();
  run_id_ = std::string{core::owner_id::from_bits(high, ids_.bits()).text()} + "00000000";
}

reply node::run(const script_request& what) {
  const std::vector<std::string_view> args{what.args.begin(), what.args.end()};
  return scripts_.run(what.script, what.keys, args, data, *this);
}

std::int64_t node::publish(std::string_view channel, std::string_view message) {
  const auto found = listeners_.find(channel);
  if (found == listeners_.end()) return 0;
  for (auto* one : found->second)
    one->push(std::string{message});
  return static_cast<std::int64_t>(found->second.size());
}

void node::unsubscribe(connection& who) {
  for (auto& [channel, all] : listeners_)
    std::erase(all, &who);
}

}  // namespace holdfast::sim
