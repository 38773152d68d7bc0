#include "core/admission.hpp"

#include <algorithm>
#include <string_view>

#include "core/quorum_machine.hpp"

namespace holdfast::core {

namespace {

bool names(std::string_view waits, std::string_view one) {
  while (!waits.empty()) {
    const auto end = std::min(waits.find(' '), waits.size());
    if (waits.substr(0, end) == one) return true;
    waits.remove_prefix(std::min(end + 1, waits.size()));
  }
  return false;
}

}  // namespace

std::string waits_of(const std::vector<node_report>& nodes) {
  std::string all;
  for (const auto& one : nodes) {
    if (!all.empty()) all += ' ';
    all += one.wait;
  }
  return all;
}

std::string still_to_begin(const node_report& one, const std::vector<node_report>& nodes) {
  if (one.wait.empty()) return {};
  for (const auto& other : nodes) {
    if (names(other.begun_with, one.wait)) return other.begun_with;
  }
  return {};
}

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
  std::size_t have_lost = 0;  // theirs, and cannot learn them
  const auto look_again = [&](duration in) {
    plan.again = plan.again ? std::min(*plan.again, in) : in;
  };
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const auto& one = nodes[i];
    if (!awaits_admission(one)) continue;
    const auto left = max_ttl - one.waited;
    const auto begun_with = one.is == standing::blank ? still_to_begin(one, nodes) : std::string{};
    if (one.is == standing::restarted && one.loses_nothing) {
      plan.admit.push_back({i, admission::grounds::kept, {}});
    } else if (can_recover && left <= duration::zero()) {
      plan.admit.push_back({i, admission::grounds::recovered, {}});
    } else if (!begun_with.empty() && left <= duration::zero()) {
      plan.admit.push_back({i, admission::grounds::all_new, begun_with});
    } else if (can_recover || !begun_with.empty()) {
      look_again(left);
    } else if (all_blank && least->waited >= max_ttl) {
      plan.admit.push_back({i, admission::grounds::all_new, waits_of(nodes)});
    } else if (all_blank) {
      look_again(max_ttl - least->waited);
    } else {
      ++have_lost;
    }
  }
  plan.counters_lost = have_lost > nodes.size() - majority_of(nodes.size());
  return plan;
}

}  // namespace holdfast::core
