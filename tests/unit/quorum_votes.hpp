// What nodes answer to one attempt, and what it sends: for the tests of the quorum machine.
#pragma once

#include <vector>

#include "core/quorum_machine.hpp"

namespace holdfast::test {

using core::quorum_machine;
using core::quorum_outcome;
using core::quorum_step;
using core::vote;
using verb = quorum_step::verb;
using kind = vote::kind;
using list = std::vector<std::size_t>;

inline vote stale(std::uint64_t counter) { return {.what = kind::stale, .counter = counter}; }
inline vote raised(std::uint64_t to) { return {.what = kind::raised, .counter = to, .asked = to}; }

// Whom a request of this kind goes to.
inline list nodes_of(const quorum_machine::steps& all, verb what) {
  list nodes;
  for (const auto& one : all) {
    if (one.what == what) nodes.push_back(one.node);
  }
  return nodes;
}

}  // namespace holdfast::test
