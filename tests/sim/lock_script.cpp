#include "sim/lock_script.hpp"

#include <algorithm>
#include <array>
#include <stdexcept>

#include "redlock_scripts.hpp"
#include "scripts.hpp"

namespace holdfast::sim {

namespace {

namespace one = stores::redis::scripts;
namespace many = stores::redlock::scripts;

constexpr std::array of_one_redis{&one::acquire,       &one::release,       &one::renew,
                                  &one::share_acquire, &one::share_release, &one::share_downgrade,
                                  &one::latch_count,   &one::latch_look};
constexpr std::array of_a_quorum{&many::acquire, &many::raise,    &many::release, &many::extend,
                                 &many::repair,  &many::standing, &many::admit};

std::string edited(const shipped_script& original, const std::vector<edit>& edits,
                   const std::string& folder) {
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

shipped_scripts::shipped_scripts(script_engine& engine, const std::vector<edit>& edits) {
  for (const auto* which : of_one_redis)
    all_.emplace_back(which, engine.load(edited(*which, edits, "")));
  for (const auto* which : of_a_quorum)
    all_.emplace_back(which, engine.load(edited(*which, edits, "redlock/")));
}

script_request shipped_scripts::run_of(const shipped_script& which, std::vector<std::string> keys,
                                       std::vector<std::string> args) const {
  const auto found = std::find_if(all_.begin(), all_.end(),
                                  [&](const auto& known) { return known.first == &which; });
  return {&which, found->second, std::move(keys), std::move(args)};
}

command shipped_scripts::read(std::vector<std::string> words) const {
  const bool by_hash = words[0] == "EVALSHA";
  if (!by_hash && words[0] != "EVAL" && words[0] != "SCRIPT") return {std::move(words)};
  const auto& named = words[words[0] == "SCRIPT" ? 2 : 1];
  const auto known = std::find_if(all_.begin(), all_.end(), [&](const auto& one) {
    return named == one.first->sha1 || named == one.first->source;
  });
  if (known == all_.end()) {
    throw std::runtime_error{"a script that the simulator does not know: " + words[1]};
  }
  script_request what{known->first, known->second, {}, {}};
  if (words[0] == "SCRIPT") return {{"SCRIPT"}, std::move(what)};
  const auto keys = static_cast<std::ptrdiff_t>(std::stoul(words[2]));
  const auto first = std::make_move_iterator(words.begin() + 3);
  what.keys.assign(first, first + keys);
  what.args.assign(first + keys, std::make_move_iterator(words.end()));
  return {{}, std::move(what), by_hash};
}

std::optional<sent_ask> shipped_scripts::ask_in(const command& what) {
  if (!what.script || !what.words.empty()) return std::nullopt;
  const auto* which = what.script->which;
  const auto id_at = [&](std::size_t arg) {
    const std::string_view text = what.script->args.at(arg);
    return core::owner_id::parse(text.substr(0, core::owner_id::digits));
  };
  if (which == &one::acquire || which == &one::share_acquire) return sent_ask{*id_at(0)};
  if (which == &many::acquire) return sent_ask{*id_at(2), id_at(9)};
  if (which == &many::repair) return sent_ask{*id_at(2)};
  return std::nullopt;
}

const stores::redis::lock_keys& keys_of(std::size_t lock) {
  // Two of them share a slot, and so a counter of tokens.
  static const std::array<stores::redis::lock_keys, locks_max> all{
      stores::redis::lock_keys{"{orders}/1"}, stores::redis::lock_keys{"{orders}/2"},
      stores::redis::lock_keys{"reports"}};
  return all.at(lock);
}

}  // namespace holdfast::sim
