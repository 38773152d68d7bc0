#include "sim/lock_script.hpp"

#include <array>
#include <stdexcept>

#include "redlock_scripts.hpp"
#include "scripts.hpp"
#include "stores/redlock/node_set.hpp"

namespace holdfast::sim {

namespace {

std::string edited(const stores::redis::scripts::script& original, const std::vector<edit>& edits,
                   const std::string& folder = "") {
  std::string text{original.source};
  for (const auto& one : edits) {
    if (one.script != folder + std::string{original.name}) continue;
    const auto at = text.find(one.from);
    if (at == std::string::npos) {
      throw std::runtime_error{"nothing to mutate in " + std::string{one.script} +
                               ".lua: " + std::string{one.from}};
    }
    text.replace(at, one.from.size(), one.to);
  }
  return text;
}

}  // namespace

lock_scripts lock_scripts::load(script_engine& engine, const std::vector<edit>& edits) {
  namespace scripts = stores::redis::scripts;
  return {engine.load(edited(scripts::acquire, edits)),
          engine.load(edited(scripts::release, edits)), engine.load(edited(scripts::renew, edits))};
}

quorum_scripts quorum_scripts::load(script_engine& engine, const std::vector<edit>& edits) {
  namespace scripts = stores::redlock::scripts;
  const auto loaded = [&](const scripts::script& original) {
    return engine.load(edited(original, edits, "redlock/"));
  };
  return {loaded(scripts::acquire), loaded(scripts::raise),  loaded(scripts::release),
          loaded(scripts::extend),  loaded(scripts::repair), loaded(scripts::standing),
          loaded(scripts::admit)};
}

std::string_view shipped_scripts::name_of(loaded_script which) const {
  const std::array<std::pair<loaded_script, std::string_view>, 10> names{
      {{redis.acquire, "acquire"},
       {redis.release, "release"},
       {redis.renew, "renew"},
       {redlock.acquire, "acquire"},
       {redlock.raise, "raise"},
       {redlock.release, "release"},
       {redlock.extend, "extend"},
       {redlock.repair, "repair"},
       {redlock.standing, "standing"},
       {redlock.admit, "admit"}}};
  for (const auto& [script, name] : names) {
    if (script == which) return name;
  }
  return "?";
}

quorum_keys::quorum_keys(std::string name)
    : lock{std::move(name)},
      queue{stores::redlock::waiters_key(lock)},
      counter{"c:" + std::to_string(stores::redis::hash_slot(lock))} {}

const quorum_keys& quorum_keys_of(std::size_t lock) {
  static const std::array<quorum_keys, locks_max> all{
      quorum_keys{keys_of(0).lock}, quorum_keys{keys_of(1).lock}, quorum_keys{keys_of(2).lock}};
  return all.at(lock);
}

const stores::redis::lock_keys& keys_of(std::size_t lock) {
  // Two of them share a slot, and so a counter of tokens.
  static const std::array<stores::redis::lock_keys, locks_max> all{
      stores::redis::lock_keys{"{orders}/1"}, stores::redis::lock_keys{"{orders}/2"},
      stores::redis::lock_keys{"reports"}};
  return all.at(lock);
}

}  // namespace holdfast::sim
