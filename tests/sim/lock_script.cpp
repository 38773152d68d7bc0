#include "sim/lock_script.hpp"

#include <array>
#include <stdexcept>

#include "scripts.hpp"

namespace holdfast::sim {

namespace {

std::string edited(const stores::redis::scripts::script& original, const std::vector<edit>& edits) {
  std::string text{original.source};
  for (const auto& one : edits) {
    if (one.script != original.name) continue;
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

const stores::redis::lock_keys& keys_of(std::size_t lock) {
  // Two of them share a slot, and so a counter of tokens.
  static const std::array<stores::redis::lock_keys, locks_max> all{
      stores::redis::lock_keys{"{orders}/1"}, stores::redis::lock_keys{"{orders}/2"},
      stores::redis::lock_keys{"reports"}};
  return all.at(lock);
}

}  // namespace holdfast::sim
