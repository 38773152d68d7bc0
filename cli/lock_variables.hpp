// What a command is told of the locks that it runs under, in its environment.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace holdfast::cli {

struct told_lock {
  std::string name{};
  std::uint64_t held_token = 0;  ///< of the lease, for HOLDFAST_HELD; zero: it has none
  std::uint64_t token = 0;       ///< for the resource: the same, or one that others count
};

// One lock: HOLDFAST_LOCK and HOLDFAST_TOKEN. Several: HOLDFAST_LOCKS, which says how many, then
// HOLDFAST_LOCK_1 and HOLDFAST_TOKEN_1 and so on, in the order in which they were named; none
// without a number, because a token is for the resource of its own lock only. What is there of
// locks further up is removed, but in HOLDFAST_HELD, which gains these. For a process without
// threads.
void set_lock_variables(const std::vector<told_lock>& locks);

}  // namespace holdfast::cli
