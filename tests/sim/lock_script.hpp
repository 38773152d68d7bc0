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

// Each `load` throws std::runtime_error if an edit does not fit the text any more.
struct lock_scripts {
  loaded_script acquire;
  loaded_script release;
  loaded_script renew;
  loaded_script share_acquire;
  loaded_script share_release;
  loaded_script share_downgrade;

  [[nodiscard]] static lock_scripts load(script_engine& engine, const std::vector<edit>& edits);
};

struct quorum_scripts {
  loaded_script acquire;
  loaded_script raise;
  loaded_script release;
  loaded_script extend;
  loaded_script repair;
  loaded_script standing;
  loaded_script admit;

  [[nodiscard]] static quorum_scripts load(script_engine& engine, const std::vector<edit>& edits);
};

struct shipped_scripts {
  shipped_scripts(script_engine& engine, const std::vector<edit>& edits)
      : redis{lock_scripts::load(engine, edits)}, redlock{quorum_scripts::load(engine, edits)} {}
  lock_scripts redis;
  quorum_scripts redlock;
  // For people.
  [[nodiscard]] std::string_view name_of(loaded_script which) const;
  // As a client wrote it.
  [[nodiscard]] command read(std::vector<std::string> words) const;
  // Of a script that may set a lock, or put a waiter into a queue: for whom.
  [[nodiscard]] std::optional<sent_ask> ask_in(const command& what) const;

 private:
  [[nodiscard]] std::optional<loaded_script> known(std::string_view hash_or_source) const;
};

// Keys of a few locks, made once: finding a slot's tag takes longer than an acquisition.
[[nodiscard]] const stores::redis::lock_keys& keys_of(std::size_t lock);
inline constexpr std::size_t locks_max = 3;

// The same locks on a quorum.
struct quorum_keys {
  explicit quorum_keys(std::string name);
  std::string lock;
  std::string queue;
  std::string counter;  // a field of the node's record
};
[[nodiscard]] const quorum_keys& quorum_keys_of(std::size_t lock);

}  // namespace holdfast::sim
