#include "core/by_node.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace holdfast::core {

std::string by_node(std::span<const node_answer> answers) {
  std::vector<std::pair<std::string, std::string>> groups;  // what was said, and by which nodes
  for (const auto& one : answers) {
    if (one.answer.empty()) continue;
    const auto known = std::find_if(groups.begin(), groups.end(),
                                    [&](const auto& group) { return group.first == one.answer; });
    if (known == groups.end()) {
      groups.emplace_back(one.answer, one.node);
    } else {
      known->second += ", " + one.node;
    }
  }
  std::string all;
  for (const auto& [text, nodes] : groups)
    all += (all.empty() ? "" : "; ") + nodes + (text.starts_with("refused") ? " " : ": ") + text;
  return all;
}

}  // namespace holdfast::core
