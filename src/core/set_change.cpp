#include "core/set_change.hpp"

#include <algorithm>

#include "core/quorum_machine.hpp"

namespace holdfast::core {

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
  const auto intact = count([](const auto& one) {
    return one.is == standing::changed || (one.as == part::stays && one.is == standing::intact);
  });
  if (intact < majority_of(new_size)) return change_verdict::too_few_intact;
  return change_verdict::safe;
}

}  // namespace holdfast::core
