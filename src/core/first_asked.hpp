// Whom to ask first, of N nodes of which a majority suffices.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "core/types.hpp"

namespace holdfast::core {

// How one node has been answering.
struct node_habit {
  duration typical{};     // from question to answer
  time_point asked_at{};  // when it was last asked for a vote
  bool late = false;      // not long ago, its answer was not there when it was needed
  bool doubtful = false;  // down, silent, or refused when it was last asked
};

// A client that asks often asks a majority first, and the others only if those do not suffice: it
// costs the nodes, and the client, two fifths less on five nodes. Every so often it asks all, which
// finds out how the others are. A client that asks seldom always asks all.
inline constexpr duration asked_all_within = std::chrono::milliseconds{100};
// A node is slow that takes this many times as long as the slowest of the fastest majority, plus
// what the scheduling of a busy machine may add.
inline constexpr int slow_factor = 3;
inline constexpr duration slow_slack = std::chrono::microseconds{300};

struct first_asked {
  std::vector<std::size_t> nodes{};     // empty: all
  duration patience = duration::max();  // then the others are asked as well
};

enum class rivals { none_seen, seen };

// All clients begin with the same node for the same lock. Where there are rivals they all keep to
// that order, late nodes or not: they wait in line at those that they ask, and somebody who gives
// the lock back elsewhere would call others.
[[nodiscard]] first_asked ask_first(std::span<const node_habit> nodes, std::size_t begin_with,
                                    rivals others, time_point now);

}  // namespace holdfast::core
