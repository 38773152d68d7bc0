#include "core/first_asked.hpp"

#include <algorithm>

#include "core/quorum_machine.hpp"

namespace holdfast::core {

first_asked ask_first(std::span<const node_habit> nodes, std::size_t begin_with, rivals others,
                      time_point now) {
  const auto majority = majority_of(nodes.size());
  std::vector<duration> typical;
  for (const auto& one : nodes) {
    const bool may_be_skipped = others == rivals::seen && !one.doubtful;
    const bool lately = one.asked_at && now - *one.asked_at <= asked_all_within;
    if (!may_be_skipped && !lately) return {};
    if (!one.doubtful) typical.push_back(one.typical);
  }
  if (typical.size() < majority || majority == nodes.size()) return {};
  const auto slowest_needed = typical.begin() + static_cast<std::ptrdiff_t>(majority - 1);
  std::nth_element(typical.begin(), slowest_needed, typical.end());
  const auto patience = *slowest_needed * slow_factor + slow_slack;
  first_asked chosen{{}, patience};
  for (const bool slow_ones : {false, true}) {
    for (std::size_t i = 0; i < nodes.size() && chosen.nodes.size() < majority; ++i) {
      const auto node = (begin_with + i) % nodes.size();
      const bool slow =
          others == rivals::none_seen && (nodes[node].late || nodes[node].typical > patience);
      if (!nodes[node].doubtful && slow == slow_ones) chosen.nodes.push_back(node);
    }
  }
  return chosen;
}

}  // namespace holdfast::core
