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
  const auto loaded = [&](const scripts::script& original) {
    return engine.load(edited(original, edits));
  };
  return {loaded(scripts::acquire),       loaded(scripts::release),
          loaded(scripts::renew),         loaded(scripts::share_acquire),
          loaded(scripts::share_release), loaded(scripts::share_downgrade)};
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
  const std::array<std::pair<loaded_script, std::string_view>, 13> names{
      {{redis.acquire, "acquire"},
       {redis.release, "release"},
       {redis.renew, "renew"},
       {redis.share_acquire, "share_acquire"},
       {redis.share_release, "share_release"},
       {redis.share_downgrade, "share_downgrade"},
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

namespace {

template <class Script>
bool is(const Script& shipped, std::string_view hash_or_source) {
  return hash_or_source == shipped.sha1 || hash_or_source == shipped.source;
}

}  // namespace

std::optional<loaded_script> shipped_scripts::known(std::string_view hash_or_source) const {
  namespace one = stores::redis::scripts;
  namespace many = stores::redlock::scripts;
  const std::array<std::pair<const one::script*, loaded_script>, 13> all{
      {{&one::acquire, redis.acquire},
       {&one::release, redis.release},
       {&one::renew, redis.renew},
       {&one::share_acquire, redis.share_acquire},
       {&one::share_release, redis.share_release},
       {&one::share_downgrade, redis.share_downgrade},
       {&many::acquire, redlock.acquire},
       {&many::raise, redlock.raise},
       {&many::release, redlock.release},
       {&many::extend, redlock.extend},
       {&many::repair, redlock.repair},
       {&many::standing, redlock.standing},
       {&many::admit, redlock.admit}}};
  for (const auto& [shipped, loaded] : all) {
    if (is(*shipped, hash_or_source)) return loaded;
  }
  return std::nullopt;
}

command shipped_scripts::read(std::vector<std::string> words) const {
  const bool by_hash = words[0] == "EVALSHA";
  if (!by_hash && words[0] != "EVAL" && words[0] != "SCRIPT") return {std::move(words)};
  const auto which = known(words[words[0] == "SCRIPT" ? 2 : 1]);
  if (!which) throw std::runtime_error{"a script that the simulator does not know: " + words[1]};
  script_request what{*which, {}, {}};
  if (words[0] == "SCRIPT") return {{"SCRIPT"}, std::move(what)};
  const auto keys = static_cast<std::ptrdiff_t>(std::stoul(words[2]));
  const auto first = std::make_move_iterator(words.begin() + 3);
  what.keys.assign(first, first + keys);
  what.args.assign(first + keys, std::make_move_iterator(words.end()));
  return {{}, std::move(what), by_hash};
}

std::optional<sent_ask> shipped_scripts::ask_in(const command& what) const {
  if (!what.script || !what.words.empty()) return std::nullopt;
  const auto& [script, keys, args] = *what.script;
  const auto id_in = [](std::string_view text) {
    return core::owner_id::parse(text.substr(0, core::owner_id::digits));
  };
  if (script == redis.acquire || script == redis.share_acquire) return sent_ask{*id_in(args.at(0))};
  if (script == redlock.acquire) return sent_ask{*id_in(args.at(2)), id_in(args.at(9))};
  if (script == redlock.repair) return sent_ask{*id_in(args.at(2))};
  return std::nullopt;
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
