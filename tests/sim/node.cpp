#include "sim/node.hpp"

#include "sim/network.hpp"
#include "stores/redis/layout.hpp"
#include "stores/redis/script_values.hpp"

namespace holdfast::sim {

void node::new_run() {
  known_scripts_.clear();
  const auto high = ids_.bits();
  run_id_ = std::string{core::owner_id::from_bits(high, ids_.bits()).text()} + "00000000";
}

reply node::run(const script_request& what) {
  const std::vector<std::string_view> keys{what.keys.begin(), what.keys.end()};
  const std::vector<std::string_view> args{what.args.begin(), what.args.end()};
  return scripts_.run(what.loaded, keys, args, data, *this);
}

reply node::answer(const command& what) {
  if (what.script) {
    const bool known = known_scripts_.contains(what.script->loaded.at);
    if (what.by_hash && !known) return reply::error("NOSCRIPT No matching script.");
    known_scripts_.insert(what.script->loaded.at);
    return run(*what.script);
  }
  const auto& verb = what.words.at(0);
  if (verb == "PING") return {reply::kind::status, 0, "PONG", {}};
  if (verb == "INFO") {
    return reply::of("redis_mode:standalone\r\nrole:master\r\nmaxmemory:0\r\nrun_id:" + run_id_ +
                     "\r\n");
  }
  const std::vector<std::string_view> words{what.words.begin(), what.words.end()};
  return execute(data, *this, words);
}

reply node::learn(loaded_script which) {
  known_scripts_.insert(which.at);
  return reply::ok();
}

std::int64_t node::publish(std::string_view channel, std::string_view message) {
  const auto found = listeners_.find(channel);
  if (found == listeners_.end()) return 0;
  for (auto* one : found->second)
    one->push(std::string{channel}, std::string{message});
  return static_cast<std::int64_t>(found->second.size());
}

std::optional<core::owner_id> node::owner_of(std::string_view key) {
  const auto* found = data.find(key, wall_us() / 1000);
  const auto* value = found == nullptr ? nullptr : std::get_if<std::string>(&found->value);
  if (value == nullptr) return std::nullopt;
  return core::owner_id::parse(std::string_view{*value}.substr(0, core::owner_id::digits));
}

std::vector<node::share> node::shares_of(std::string_view key) {
  const auto now = wall_us() / 1000;
  const auto* found = data.find(key, now);
  const auto* fields = found == nullptr ? nullptr : std::get_if<stored::hash>(&found->value);
  std::vector<share> all;
  if (fields == nullptr) return all;
  for (const auto& [field, text] : *fields) {
    const auto id = core::owner_id::parse(field);
    if (!id || static_cast<std::int64_t>(stores::redis::read_number(text)) <= now) continue;
    const std::string_view units = std::string_view{text}.substr(text.find(';') + 1);
    constexpr std::string_view mark = ";token=";
    all.push_back({*id, static_cast<std::uint32_t>(stores::redis::read_number(units)),
                   stores::redis::read_number(units.substr(units.find(mark) + mark.size()))});
  }
  return all;
}

bool node::has_firmly(std::string_view key, const core::owner_id& id, fencing_token token) {
  const auto* found = data.find(key, wall_us() / 1000);
  const auto* value = found == nullptr ? nullptr : std::get_if<std::string>(&found->value);
  if (value == nullptr || !value->starts_with(id.text())) return false;
  const auto holder = stores::redis::parse_holder(*value);
  return holder && holder->token != fencing_token{} && holder->token <= token;
}

void node::unsubscribe(const std::string& channel, connection& who) {
  std::erase(listeners_[channel], &who);
}

void node::unsubscribe(connection& who) {
  for (auto& [channel, all] : listeners_)
    std::erase(all, &who);
}

}  // namespace holdfast::sim
