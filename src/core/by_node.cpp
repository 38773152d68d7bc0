#include "core/by_node.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace holdfast::core {

std::string by_node(std::span<const node_answer> answers) {
  std::vector<node_answer> clauses;
  for (const auto& one : answers) {
    const auto same = std::find_if(clauses.begin(), clauses.end(),
                                   [&](const auto& clause) { return clause.said == one.said; });
    if (same == clauses.end()) {
      clauses.push_back(one);
    } else {
      same->node += ", " + one.node;
    }
  }
  std::string text;
  for (const auto& clause : clauses)
    text += "; " + clause.node + (clause.said.starts_with("refused") ? " " : ": ") + clause.said;
  return text;
}

}  // namespace holdfast::core
