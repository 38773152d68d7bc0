// The locks under which this process runs: those that `holdfast run` took further up and holds
// until this process has ended, and the one that a script took by `holdfast lock`. Waiting for one
// of them would never end, or not before the script's lock is lost.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::cli {

// Read from and written to the variable HOLDFAST_HELD: `HASH:TOKEN`, separated by spaces, where
// HASH is that of the lock's name. Which store a lock is on is not written down: a store that says
// that the lock of this name is held with this very token is the one. So the variable holds no
// secret, two URLs of one store are known to be one, and a process that outlives its lock is not
// mistaken for one that runs under it.
class held_locks {
 public:
  static constexpr const char* variable = "HOLDFAST_HELD";

  [[nodiscard]] static held_locks of_this_process();
  explicit held_locks(std::string_view text);

  // True if a lock of this name is held further up, on whatever store.
  [[nodiscard]] bool knows(std::string_view name) const noexcept;
  [[nodiscard]] bool knows(std::string_view name, std::uint64_t token) const noexcept;

  void add(std::string_view name, std::uint64_t token);
  [[nodiscard]] std::string text() const;  // the variable's value

 private:
  struct entry {
    std::uint64_t name_hash;
    std::uint64_t token;
  };
  std::vector<entry> entries_;  // the innermost last
};

}  // namespace holdfast::cli
