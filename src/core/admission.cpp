#include "core/admission.hpp"

#include <algorithm>

#include "core/quorum_machine.hpp"

namespace holdfast::core {

admission_plan plan_admission(const std::vector<node_report>& nodes, duration max_ttl) {
  using standing = node_report::standing;
  const auto count = [&](standing which) {
    return static_cast<std::size_t>(std::count_if(
        nodes.begin(), nodes.end(), [&](const auto& one) { return one.is == which; }));
  };
  const bool can_recover = count(standing::votes) >= majority_of(nodes.size());
  const bool all_blank = count(standing::blank) == nodes.size();
  const auto least = std::min_element(
      nodes.begin(), nodes.end(), [](const auto& a, const auto& b) { return a.waited < b.waited; });

  admission_plan plan;
  const auto look_again = [&](duration in) {
    plan.again = plan.again ? std::min(*plan.again, in) : in;
  };
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const auto& one = nodes[i];
    if (one.is != standing::blank && one.is != standing::restarted) continue;
    const auto left = max_ttl - one.waited;
    if (one.is == standing::restarted && one.loses_nothing) {
      plan.admit.push_back({i, admission::grounds::kept});
    } else if (can_recover && left <= duration::zero()) {
      plan.admit.push_back({i, admission::grounds::recovered});
    } else if (can_recover) {
      look_again(left);
    } else if (all_blank && least->waited >= max_ttl) {
      plan.admit.push_back({i, admission::grounds::all_new});
    } else if (all_blank) {
      look_again(max_ttl - least->waited);
    }
  }
  const auto lost = count(standing::blank) + count(standing::restarted) - plan.admit.size();
  plan.counters_lost = !all_blank && lost > nodes.size() - majority_of(nodes.size());
  return plan;
}

}  // namespace holdfast::core
