// Decides which nodes of a set that may not vote can be let in, and on what grounds.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/types.hpp"

namespace holdfast::core {

// What a node is to us, as it said when it was asked last.
struct node_report {
  enum class standing {
    unreachable,
    votes,
    blank,      // has no marker: new, or it lost everything, its counters included
    restarted,  // its marker is from before its last start: what it lost is not known
    foreign,    // belongs to another set
  };
  standing is = standing::unreachable;
  duration waited{};           // blank, restarted: for how long, by its own clock
  bool loses_nothing = false;  // restarted: every write is on disk before it is answered
  std::string wait{};          // not votes: which of its waits it is in, unlike any other
  std::string begun_with{};    // votes, restarted: the waits that all were in when its set began
};

// Whether it may have lost something, and waits to be let in.
[[nodiscard]] constexpr bool awaits_admission(const node_report& one) noexcept {
  return one.is == node_report::standing::blank || one.is == node_report::standing::restarted;
}
// The waits that the nodes are in, as text: what a set that is new begins with.
[[nodiscard]] std::string waits_of(const std::vector<node_report>& nodes);
// What the set began with, if this node has not been let in since: it is in that wait still, and
// has granted nothing. Empty if it may have. Without it, a set whose beginning was interrupted
// could not go on: it is not new, and has no majority that the others could learn counters from.
[[nodiscard]] std::string still_to_begin(const node_report& one,
                                         const std::vector<node_report>& nodes);

struct admission {
  enum class grounds {
    kept,       // its marker survived, and it loses nothing
    recovered,  // waited, and gets its counters from a majority that lost nothing
    all_new,    // has waited, and every node was blank when the set began: it has no counters
  };
  std::size_t node = 0;
  grounds because{};
  std::string begun_with{};  // all_new: what the node is to remember
  friend bool operator==(const admission&, const admission&) = default;
};

struct admission_plan {
  std::vector<admission> admit;
  // When to look again, if a node only has to wait; empty: nothing will change by itself.
  std::optional<duration> again{};
  // Too few nodes kept their counters for the others to learn them: a person must decide.
  bool counters_lost = false;
};

// A node that comes back needs its counters from a majority *without it*: each token went to a
// majority that it may have been one of, and two majorities less that one node still meet.
[[nodiscard]] admission_plan plan_admission(const std::vector<node_report>& nodes,
                                            duration max_ttl);

}  // namespace holdfast::core
