#include "core/by_node.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace holdfast::core {

std::string by_node(std::span<const node_answer> said) {
  std::vector<std::pair<std::string, std::string>> groups;  // what was said, and by which nodes
  for (const auto& one : said) {
    if (one.said.empty()) continue;
    const auto known = std::find_if(groups.begin(), groups.end(),
                                    [&](const auto& group) { return group.first == one.said; });
    if (known == groups.end()) {
      groups.emplace_back(one.said, one.node);
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
