#include "sim/node.hpp"

#include "sim/network.hpp"
#include "stores/redis/layout.hpp"

namespace holdfast::sim {

void node::new_run() {
  const auto high = ids_.bits();
  run_id_ = std::string{core::owner_id::from_bits(high, ids_.bits()).text()} + "00000000";
}

reply node::run(const script_request& what) {
  std::vector<std::string_view> args;
  args.reserve(what.args.size() + 1);
  args.assign(what.args.begin(), what.args.end());
  if (what.with_run_id) args.push_back(run_id_);
  return scripts_.run(what.script, what.keys, args, data, *this);
}

std::int64_t node::publish(std::string_view channel, std::string_view message) {
  const auto found = listeners_.find(channel);
  if (found == listeners_.end()) return 0;
  for (auto* one : found->second)
    one->push(std::string{message});
  return static_cast<std::int64_t>(found->second.size());
}

std::optional<core::owner_id> node::owner_of(std::string_view key) {
  const auto* found = data.find(key, wall_us() / 1000);
  const auto* value = found == nullptr ? nullptr : std::get_if<std::string>(&found->value);
  if (value == nullptr) return std::nullopt;
  return core::owner_id::parse(std::string_view{*value}.substr(0, core::owner_id::digits));
}

bool node::has_firmly(std::string_view key, const core::owner_id& id, fencing_token token) {
  const auto* found = data.find(key, wall_us() / 1000);
  const auto* value = found == nullptr ? nullptr : std::get_if<std::string>(&found->value);
  if (value == nullptr || !value->starts_with(id.text())) return false;
  const auto holder = stores::redis::parse_holder(*value);
  return holder && holder->token != fencing_token{} && holder->token <= token;
}

void node::unsubscribe(connection& who) {
  for (auto& [channel, all] : listeners_)
    std::erase(all, &who);
}

}  // namespace holdfast::sim
