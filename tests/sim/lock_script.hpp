// The scripts that are shipped, as a simulation runs them: compiled, perhaps with a planted bug.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/node.hpp"
#include "sim/script_engine.hpp"
#include "sim/traffic.hpp"
#include "stores/redis/layout.hpp"

namespace holdfast::sim {

// A change to a script's text, to plant a bug. Scripts of a quorum are called "redlock/…".
struct edit {
  std::string_view script;
  std::string_view from;
  std::string_view to;
};

class shipped_scripts {
 public:
  // Throws std::runtime_error if an edit does not fit the text any more.
  shipped_scripts(script_engine& engine, const std::vector<edit>& edits);

  // A run of this script.
  [[nodiscard]] script_request run_of(const shipped_script& which, std::vector<std::string> keys,
                                      std::vector<std::string> args) const;
  // As a client wrote it.
  [[nodiscard]] command read(std::vector<std::string> words) const;
  // Of a script that may set a lock, or put a waiter into a queue: for whom.
  [[nodiscard]] static std::optional<sent_ask> ask_in(const command& what);

 private:
  std::vector<std::pair<const shipped_script*, loaded_script>> all_;
};

// Keys of a few locks, made once: finding a slot's tag takes longer than an acquisition.
[[nodiscard]] const stores::redis::lock_keys& keys_of(std::size_t lock);
inline constexpr std::size_t locks_max = 3;

}  // namespace holdfast::sim
