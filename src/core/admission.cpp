#include "core/admission.hpp"

#include <algorithm>

#include "core/quorum_machine.hpp"

namespace holdfast::core {

namespace {

using standing = node_report::standing;
using move = node_report::move;

std::size_t count(std::span<const node_report> nodes, auto&& which) {
  return static_cast<std::size_t>(std::count_if(nodes.begin(), nodes.end(), which));
}

// While nodes change over, a majority of the old list and one of the new list may both be found
// among those that answer, and clocks do not tell which of them has the last token. That this set
// was complete once says nothing about a move away from it.
bool is_half_moved(std::span<const node_report> nodes) {
  const auto elsewhere = [](const node_report& one) {
    return one.is == standing::foreign || one.is == standing::left;
  };
  const bool done = count(nodes, [](const node_report& one) {
                      return one.is == standing::votes && one.moved == move::complete;
                    }) > 0;
  const bool begun = count(nodes, [&](const node_report& one) {
                       return elsewhere(one) || one.moved == move::begun;
                     }) > 0;
  const bool goes_on =
      count(nodes, [&](const node_report& one) { return elsewhere(one) && one.later; }) > 0;
  return goes_on || (begun && !done);
}

constexpr duration ahead_max = believed_ahead_max + clocks_apart_max;
// One second more for the tokens that raises add to the highest, one each.
constexpr duration raises_add_max = std::chrono::seconds{1};

std::uint64_t ahead_of_clocks(std::span<const node_report> nodes, duration by) {
  duration latest{};
  for (const auto& one : nodes)
    latest = std::max(latest, one.clock);
  using std::chrono::microseconds;
  return static_cast<std::uint64_t>(
      std::chrono::floor<microseconds>(latest + by + raises_add_max).count());
}

}  // namespace

admission_rule::admission_rule(std::size_t of_nodes) noexcept
    : nodes{of_nodes}, intact_min{majority_of(of_nodes)} {}

counter_source admission::judge(std::span<const node_report> nodes, time_point now) {
  const auto intact = count(nodes, is_intact);
  needs_another_look_ = false;
  if (intact >= rule_.intact_min) {
    too_few_since_.reset();
    return counter_source::intact;
  }
  if (!too_few_since_) too_few_since_ = now;
  const bool looked_twice = now >= after(*too_few_since_, rule_.looks_apart);
  const auto there = intact + count(nodes, has_to_wait);
  const bool may_ask_all = there >= majority_of(rule_.nodes) && !is_half_moved(nodes);
  needs_another_look_ = may_ask_all && !looked_twice;
  return looked_twice && may_ask_all ? counter_source::all_there : counter_source::nobody;
}

std::uint64_t least_counter(std::span<const node_report> answering, duration max_ttl) {
  return ahead_of_clocks(answering, std::max(duration::zero(), ahead_max - max_ttl));
}

std::uint64_t least_counter_at_once(std::span<const node_report> all, duration max_ttl) {
  return ahead_of_clocks(all, std::max(believed_ahead_max, ahead_max - max_ttl));
}

}  // namespace holdfast::core
