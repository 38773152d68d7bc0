// The nodes behind a `redlock://` URL: looking at them, and deciding what clients must not decide.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include <holdfast/export.hpp>
#include <holdfast/result.hpp>

namespace holdfast::redlock {

struct node_status {
  std::string node{};
  bool votes = false;
  std::string said{};  ///< for a person
};

inline constexpr std::chrono::milliseconds patience{3'000};

// What each node is. Begins the wait of those that may not vote, as any client does.
[[nodiscard]] HOLDFAST_API result<std::vector<node_status>> status(
    std::string_view url, std::chrono::milliseconds timeout = patience);

// Lets a new set begin at once instead of after max_ttl. You vouch that no lock is held on it.
// Every node has to answer, and none may have voted before; does nothing to a set that works
// already.
[[nodiscard]] HOLDFAST_API result<void> init(std::string_view url,
                                             std::chrono::milliseconds timeout = patience);

// Lets nodes vote again after a majority has lost its counters, which clients refuse to do: they
// begin above the highest counters that are left anywhere, and above what clocks allow. Every node
// has to answer, and to have waited for max_ttl. Tokens go on increasing if clocks were right.
[[nodiscard]] HOLDFAST_API result<void> recover(std::string_view url,
                                                std::chrono::milliseconds timeout = patience);

// Goes from one list of nodes to another: replaces, adds or removes nodes. `to` needs a higher
// epoch and the same max_ttl, database and prefix; without credentials it has those of `from`. A
// majority of the old nodes, and enough of those that stay, have to answer and to have lost
// nothing; new nodes have to answer and to be empty. Clients of the old list are refused from then
// on, and told the new one; leases they hold are not renewed, and end in time. Not twice within
// max_ttl. Stopped half-way, or with a node that was away, it is finished by calling it again.
[[nodiscard]] HOLDFAST_API result<void> move(std::string_view from, std::string_view to,
                                             std::chrono::milliseconds timeout = patience);

}  // namespace holdfast::redlock
