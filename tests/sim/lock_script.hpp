// The scripts that are shipped, as a simulation runs them: compiled, perhaps with a planted bug.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/script_engine.hpp"
#include "stores/redis/layout.hpp"

namespace holdfast::sim {

// A change to a script's text, to plant a bug.
struct edit {
  std::string_view script;
  std::string_view from;
  std::string_view to;
};

struct lock_scripts {
  loaded_script acquire;
  loaded_script release;
  loaded_script renew;

  // Throws std::runtime_error if an edit does not fit the text any more.
  [[nodiscard]] static lock_scripts load(script_engine& engine, const std::vector<edit>& edits);
};

// Keys of a few locks, made once: finding a slot's tag takes longer than an acquisition.
[[nodiscard]] const stores::redis::lock_keys& keys_of(std::size_t lock);
inline constexpr std::size_t locks_max = 3;

}  // namespace holdfast::sim
