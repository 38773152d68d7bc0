#include "stores/redlock/moving.hpp"

#include <algorithm>
#include <array>

#include <holdfast/status.hpp>

#include "core/set_change.hpp"
#include "redlock_scripts.hpp"
#include "stores/redis/script_values.hpp"

namespace holdfast::stores::redlock {

namespace {

using part = core::changing_node::part;
using standing = core::changing_node::standing;

struct traveller {
  part as{};
  std::string name;
  const node_set* reached_by = nullptr;  // the set whose connection to it is used,
  std::size_t place = 0;                 // and its place there
  std::string old_config;                // empty: not in the old set
  std::string new_config;
  standing is = standing::unreachable;
  std::string said;  // for a person
};

std::optional<std::size_t> place_in(const node_set& set, const std::string& name) {
  const auto& names = set.names();
  const auto at = std::find(names.begin(), names.end(), name);
  if (at == names.end()) return std::nullopt;
  return static_cast<std::size_t>(at - names.begin());
}

// Names the new set, and no place in it.
std::string config_of_leavers(const node_set& to) {
  const auto& one = to.nodes().front().config;
  return one.substr(0, one.rfind('-')) + "-left";
}

std::vector<traveller> everybody(const node_set& from, const node_set& to) {
  std::vector<traveller> all;
  for (std::size_t i = 0; i < from.nodes().size(); ++i) {
    const auto& one = from.nodes()[i];
    const auto next = place_in(to, one.name);
    all.push_back({next ? part::stays : part::leaves,
                   one.name,
                   &from,
                   i,
                   one.config,
                   next ? to.nodes()[*next].config : config_of_leavers(to),
                   {},
                   {}});
  }
  for (std::size_t i = 0; i < to.nodes().size(); ++i) {
    const auto& one = to.nodes()[i];
    if (place_in(from, one.name)) continue;
    all.push_back({part::joins, one.name, &to, i, {}, one.config, {}, {}});
  }
  return all;
}

void take_answer(traveller& one, const std::optional<result<redis::reply>>& answer) {
  one.is = standing::unreachable;
  one.said = "no answer";
  if (!answer) return;
  if (!*answer) {
    one.said = answer->error().message;
    return;
  }
  const auto fields = redis::elements_of(***answer);
  constexpr std::array<standing, 7> by_number{standing::foreign, standing::intact,  standing::waits,
                                              standing::changed, standing::joining, standing::empty,
                                              standing::settling};
  constexpr std::array<std::string_view, 7> in_words{"",
                                                     "votes",
                                                     "may have lost locks",
                                                     "votes in the new set",
                                                     "is in the new set and does not vote yet",
                                                     "is empty",
                                                     "was moved a moment ago"};
  if (fields.empty() || fields[0]->type != redis::reply_kind::integer) return;
  const auto number = static_cast<std::size_t>(fields[0]->integer);
  if (number >= by_number.size()) return;
  one.is = by_number[number];
  one.said = in_words[number];
  if (one.is == standing::foreign) {
    one.said = "belongs to the set " +
               escape(fields.size() > 1 ? redis::text_of(*fields[1]) : std::string_view{});
  }
}

std::string_view verb_of(part as) {
  switch (as) {
    case part::stays:
      return "stay";
    case part::leaves:
      return "leave";
    case part::joins:
      break;
  }
  return "join";
}

// Asks those whom it concerns, all at once.
template <class Concerned>
void ask(std::vector<traveller>& all, const node_set& from, const node_set& to, bool only_look,
         Concerned concerned, core::time_point until) {
  const auto max_ttl = redis::milliseconds_text(to.config.max_ttl);
  for (const auto* set : {&from, &to}) {
    const auto asked = set->ask_all();
    const auto theirs = [&](const traveller& one) {
      return one.reached_by == set && concerned(one);
    };
    for (const auto& one : all) {
      if (!theirs(one)) continue;
      const std::array<std::string_view, 5> args{one.old_config, one.new_config, to.description,
                                                 max_ttl, only_look ? "look" : verb_of(one.as)};
      asked->ask(one.place, {scripts::move, record_keys, args});
    }
    const auto answers = asked->gather(until);
    for (auto& one : all) {
      if (theirs(one)) take_answer(one, answers[one.place]);
    }
  }
}

failure told(errc code, std::string message, const std::vector<traveller>& all) {
  failure why{code, std::move(message), {}};
  for (const auto& one : all) {
    why.message += (why.nodes.empty() ? " (" : "; ") + one.name + " " + one.said;
    why.nodes.push_back({one.name, one.said});
  }
  why.message += ")";
  return why;
}

constexpr std::string_view by_hand =
    "or, with every client stopped, wait until max_ttl is over, delete the record "
    "holdfast:{redlock}:node on every node, and begin the new set with `holdfast redlock init`: "
    "tokens then go on from clients' clocks";

result<void> allowed(const node_set& from, const node_set& to, const std::vector<traveller>& all) {
  std::vector<core::changing_node> nodes;
  nodes.reserve(all.size());
  for (const auto& one : all)
    nodes.push_back({one.as, one.is});
  switch (core::judge_change(nodes)) {
    case core::change_verdict::safe:
      return {};
    case core::change_verdict::too_much_at_once:
      return fail(
          told(errc::store_refused,
               "too much at once, a majority of the new nodes need not meet one of the old: "
               "nothing was changed; go from " +
                   from.description + " to " + to.description + " in several moves",
               all));
    case core::change_verdict::foreign_node:
      return fail(
          told(errc::incompatible,
               "a node belongs to another set: nothing was changed; see that both lists are "
               "written as their clients write them",
               all));
    case core::change_verdict::newcomer_away:
      return fail(told(errc::store_unreachable,
                       "a new node does not answer: nothing was changed; start it first", all));
    case core::change_verdict::too_early:
      return fail(told(errc::store_loading,
                       "locks of the list before may still be held: nothing was changed; do this "
                       "when max_ttl is over since the last move",
                       all));
    case core::change_verdict::too_few_closed:
      return fail(
          told(errc::store_unreachable,
               "a majority of the old nodes has to answer: nothing was changed; start them, " +
                   std::string{by_hand},
               all));
    case core::change_verdict::too_few_intact:
      break;
  }
  return fail(
      told(errc::store_unreachable,
           "too few of the nodes that stay have kept what they had: nothing was changed; wait "
           "until they vote again (`holdfast redlock status`), or `holdfast redlock recover` "
           "the old set first, " +
               std::string{by_hand},
           all));
}

}  // namespace

result<void> move_set(const node_set& from, const node_set& to, core::time_point until) {
  if (to.config.epoch <= from.config.epoch) {
    return fail(errc::invalid_argument,
                "the new list needs a higher epoch than " + std::to_string(from.config.epoch) +
                    ": write it as ?epoch=" + std::to_string(from.config.epoch + 1));
  }
  if (to.config.max_ttl != from.config.max_ttl) {
    return fail(errc::invalid_argument,
                "both lists need the same max_ttl: nodes wait for as long as old locks may last");
  }
  auto all = everybody(from, to);
  ask(
      all, from, to, true, [](const auto&) { return true; }, until);
  if (auto ok = allowed(from, to, all); !ok) return ok;
  // Those that stay first: with a majority of them the new set works.
  for (const auto who : {part::stays, part::leaves, part::joins})
    ask(
        all, from, to, false, [&](const auto& one) { return one.as == who; }, until);
  const bool missed = std::any_of(all.begin(), all.end(), [](const auto& one) {
    return one.as != part::leaves && one.is == standing::unreachable;
  });
  if (!missed) return {};
  // What the others did stands: how many they are was looked at before.
  return fail(told(errc::store_unreachable,
                   "some nodes have not changed over: do this again when they are back", all));
}

}  // namespace holdfast::stores::redlock
