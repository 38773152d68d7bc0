#include "stores/redlock/admin.hpp"

#include <algorithm>

#include "core/by_node.hpp"
#include "runtime/clock.hpp"

namespace holdfast::stores::redlock {

namespace {

using is = core::node_report::standing;

failure refusal(errc code, std::string message, const node_set& set,
                std::span<const node_standing> seen) {
  failure why{code, std::move(message), {}};
  for (std::size_t i = 0; i < seen.size(); ++i)
    why.nodes.push_back({set.names()[i], seen[i].said});
  why.message += " (" + core::by_node(why.nodes) + ")";
  return why;
}

bool any(std::span<const node_standing> seen, is which) {
  return std::any_of(seen.begin(), seen.end(),
                     [&](const auto& one) { return one.report.is == which; });
}

}  // namespace

result<void> init_set(const node_set& set, core::time_point until) {
  const auto seen = set.survey(until, with_counters::yes);
  if (any(seen, is::foreign)) {
    return fail(refusal(
        errc::incompatible,
        "nothing was changed: a node has voted in another set than " + set.set().ours, set, seen));
  }
  if (any(seen, is::unreachable)) {
    return fail(refusal(errc::store_unreachable,
                        "nothing was changed: every node has to answer for this", set, seen));
  }
  node_set::record_scripts scripts(seen.size());
  for (std::size_t i = 0; i < seen.size(); ++i) {
    if (seen[i].report.is == is::votes) continue;
    scripts[i] = vouched_script(set.identity(), i, runtime::wall_ms(), seen);
  }
  const auto answers = set.run_on_records(scripts, until);
  failure why{errc::store_refused, "some nodes do not vote yet; run this again", {}};
  for (std::size_t i = 0; i < seen.size(); ++i) {
    if (!scripts[i]) continue;
    const auto said = !answers[i]    ? std::string{"no answer"}
                      : !*answers[i] ? answers[i]->error().message
                                     : read_admitted(***answers[i]).value_or("");
    if (!said.empty()) why.nodes.push_back({set.names()[i], said});
  }
  if (why.nodes.empty()) return {};
  why.message += " (" + core::by_node(why.nodes) + ")";
  return fail(std::move(why));
}

}  // namespace holdfast::stores::redlock
