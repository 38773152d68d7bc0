// Decides whether one set of nodes may become another, so that at no time two majorities can grant
// the same lock.
//
// A node changes over in one step, keeping its keys and counters: from then on it refuses clients
// of the old set. Until every lock of the old set has expired, only nodes that changed over vote in
// the new one; nodes that join wait for that, and so do nodes that stay and may have lost
// something. So every grant of
// the new set is by `majority(new)` nodes of the old one. With
//
//     majority(old) + majority(new) > old nodes
//
// they meet every majority that granted before, and leave no majority of the old set to grant
// after. One node may therefore be replaced, added or removed at any size; two of five may be
// replaced, two of five may not be removed. Locks of the list before the old one must have expired,
// too: from five to four to three at once would be from five to three. docs/redlock.md
#pragma once

#include <cstddef>
#include <span>

namespace holdfast::core {

struct changing_node {
  enum class part { stays, leaves, joins };
  enum class standing {
    unreachable,
    intact,    // of the old set, and has lost nothing
    waits,     // of the old set, and may have lost something
    settling,  // of the old set, but locks of the one before it may still be held
    changed,   // of the new set, and votes
    joining,   // of the new set, and does not vote yet
    empty,     // of no set, or it lost everything
    foreign,   // of another set
  };
  part as{};
  standing is{};
};

enum class change_verdict {
  safe,
  too_much_at_once,
  foreign_node,    // a node belongs to another set
  newcomer_away,   // a node that joins does not answer
  too_early,       // locks of an earlier set may still be held
  too_few_closed,  // a majority of the old set has to answer, to refuse its clients from then on
  too_few_stay,    // a majority of the new set has to be nodes of the old one that answer
};

[[nodiscard]] change_verdict judge_change(std::span<const changing_node> nodes);

// True if a majority of the new set are nodes that changed over, or do so now, and a majority of
// the old set has been told of this move and no other. A node that may have lost something counts:
// it votes after a wait, in either set. From then on no majority of the old set can renew or grant,
// and nodes that join begin their wait.
[[nodiscard]] bool enough_change_over(std::span<const changing_node> nodes);

}  // namespace holdfast::core
