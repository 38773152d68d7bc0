#include "core/by_node.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace holdfast::core {

std::string by_node(std::span<const node_answer> said) {
  std::vector<std::pair<std::string, std::string>> groups;  // what was said, and by which nodes
  for (const auto& [node, text] : said) {
    if (text.empty()) continue;
    const auto known = std::find_if(groups.begin(), groups.end(),
                                    [&](const auto& group) { return group.first == text; });
    if (known == groups.end()) {
      groups.emplace_back(text, node);
    } else {
      known->second += ", " + node;
    }
  }
  std::string all;
  for (const auto& [text, nodes] : groups)
    all += (all.empty() ? "" : "; ") + nodes + (text.starts_with("refused") ? " " : ": ") + text;
  return all;
}

}  // namespace holdfast::core
