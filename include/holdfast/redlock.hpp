// The nodes behind a `redlock://` URL: looking at them, and deciding what clients do not decide.
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
  std::string description{};  ///< for a person
};

inline constexpr std::chrono::milliseconds patience{3'000};

// What each node is. Changes nothing: the wait of a node begins when a client uses it.
[[nodiscard]] HOLDFAST_API result<std::vector<node_status>> status(
    std::string_view url, std::chrono::milliseconds timeout = patience);

// Lets every node vote at once: those of a new set, and those that were restarted or lost their
// data, which otherwise wait for max_ttl. You vouch that no lock is held on the set, and that no
// client is asking for one: otherwise a lock may get a second holder. Every node has to answer.
// Does nothing to a set that works already.
[[nodiscard]] HOLDFAST_API result<void> init(std::string_view url,
                                             std::chrono::milliseconds timeout = patience);

// Goes from one list of nodes to another: replaces, adds or removes nodes. `to` needs a higher
// epoch and the same max_ttl, database and prefix; without credentials it has those of `from`. A
// majority of the old nodes has to answer, and a majority of the new list has to be among them; new
// nodes have to answer and to be empty, and vote after max_ttl. Clients of the old list are refused
// from then on, and told the new one; leases they hold are not renewed, and end in time. Not twice
// within max_ttl. Stopped half-way, or with a node that was away, call it again to finish it: until
// then nodes of the new list that restart do not vote again.
[[nodiscard]] HOLDFAST_API result<void> move(std::string_view from, std::string_view to,
                                             std::chrono::milliseconds timeout = patience);

}  // namespace holdfast::redlock
