#include "core/set_change.hpp"

#include <algorithm>

#include "core/quorum_machine.hpp"

namespace holdfast::core {

bool enough_change_over(std::span<const changing_node> nodes) {
  using part = changing_node::part;
  using standing = changing_node::standing;
  const auto count = [&](auto which) {
    return static_cast<std::size_t>(std::count_if(nodes.begin(), nodes.end(), which));
  };
  const auto is_told = [](const changing_node& one) {
    return one.is != standing::unreachable && one.is != standing::foreign &&
           one.is != standing::settling;
  };
  const auto told = count([&](const auto& one) { return one.as != part::joins && is_told(one); });
  const auto changed = count([&](const changing_node& one) {
    return (one.as == part::stays && is_told(one)) ||
           (one.as == part::joins && one.is == standing::changed);
  });
  return told >= majority_of(count([](const auto& one) { return one.as != part::joins; })) &&
         changed >= majority_of(count([](const auto& one) { return one.as != part::leaves; }));
}

change_verdict judge_change(std::span<const changing_node> nodes) {
  using part = changing_node::part;
  using standing = changing_node::standing;
  const auto count = [&](auto which) {
    return static_cast<std::size_t>(std::count_if(nodes.begin(), nodes.end(), which));
  };
  const auto old_size = count([](const auto& one) { return one.as != part::joins; });
  const auto new_size = count([](const auto& one) { return one.as != part::leaves; });
  if (majority_of(old_size) + majority_of(new_size) <= old_size) {
    return change_verdict::too_much_at_once;
  }
  if (count([](const auto& one) { return one.is == standing::foreign; }) > 0) {
    return change_verdict::foreign_node;
  }
  if (count([](const auto& one) { return one.is == standing::settling; }) > 0) {
    return change_verdict::too_early;
  }
  const auto away = [](const changing_node& one) { return one.is == standing::unreachable; };
  if (count([&](const auto& one) { return one.as == part::joins && away(one); }) > 0) {
    return change_verdict::newcomer_away;
  }
  const auto closed = count([&](const auto& one) { return one.as != part::joins && !away(one); });
  if (closed < majority_of(old_size)) return change_verdict::too_few_closed;
  if (!enough_change_over(nodes)) return change_verdict::too_few_stay;
  return change_verdict::safe;
}

}  // namespace holdfast::core
