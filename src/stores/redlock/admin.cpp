#include "stores/redlock/admin.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "core/by_node.hpp"
#include "core/set_change.hpp"
#include "redlock_scripts.hpp"
#include "runtime/clock.hpp"
#include "runtime/random.hpp"
#include "stores/redis/script_values.hpp"
#include "stores/redlock/node_set.hpp"

namespace holdfast::stores::redlock {

namespace {

// The nodes of a set, for one call: it leaves nothing running.
class visit {
 public:
  explicit visit(redlock_config of)
      : work_{std::make_shared<runtime::background>(1)},
        set_{std::make_shared<node_set>(std::move(of), work_, node_set::role::visitor)} {}
  visit(const visit&) = delete;
  visit& operator=(const visit&) = delete;
  ~visit() {
    set_->close();
    work_->stop();
  }
  [[nodiscard]] const node_set& set() const noexcept { return *set_; }

 private:
  const std::shared_ptr<runtime::background> work_;
  const std::shared_ptr<node_set> set_;
};

failure with_answers(errc code, std::string message, std::vector<node_answer> answers) {
  message += " (" + core::by_node(answers) + ")";
  return {code, std::move(message), std::move(answers)};
}

// --- init_set -----------------------------------------------------------------------------------

using report = core::node_report::standing;

failure refusal(errc code, std::string message, const node_set& set,
                std::span<const node_standing> seen) {
  std::vector<node_answer> answers;
  for (std::size_t i = 0; i < seen.size(); ++i)
    answers.push_back({set.names()[i], seen[i].said});
  return with_answers(code, std::move(message), std::move(answers));
}

bool any(std::span<const node_standing> seen, report which) {
  return std::any_of(seen.begin(), seen.end(),
                     [&](const auto& one) { return one.report.is == which; });
}

// --- move_set -----------------------------------------------------------------------------------

using part = core::changing_node::part;
using standing = core::changing_node::standing;

struct migrating_node {
  part as{};
  std::string name;
  const node_set* reached_by = nullptr;  // the set whose connection to it is used,
  std::size_t place = 0;                 // and its place there
  std::string old_config{};              // empty: not in the old set
  std::string new_config{};
  standing is = standing::unreachable;  // before it was changed
  bool knows_complete = false;          // it is in the new set, and knows that enough are
  std::string said{};                   // for a person
};
using migrating_nodes = std::vector<migrating_node>;

std::optional<std::size_t> place_in(const node_set& set, const std::string& name) {
  const auto& names = set.names();
  const auto at = std::find(names.begin(), names.end(), name);
  if (at == names.end()) return std::nullopt;
  return static_cast<std::size_t>(at - names.begin());
}

// Names the new set, and no place in it.
std::string config_of_leavers(const node_set& to) {
  const auto& one = to.config_of(0);
  return one.substr(0, one.rfind('-')) + "-left";
}

migrating_nodes everybody(const node_set& from, const node_set& to) {
  migrating_nodes all;
  for (std::size_t i = 0; i < from.size(); ++i) {
    const auto next = place_in(to, from.names()[i]);
    all.push_back({.as = next ? part::stays : part::leaves,
                   .name = from.names()[i],
                   .reached_by = &from,
                   .place = i,
                   .old_config = from.config_of(i),
                   .new_config = next ? to.config_of(*next) : config_of_leavers(to)});
  }
  for (std::size_t i = 0; i < to.size(); ++i) {
    if (place_in(from, to.names()[i])) continue;
    all.push_back({.as = part::joins,
                   .name = to.names()[i],
                   .reached_by = &to,
                   .place = i,
                   .new_config = to.config_of(i)});
  }
  return all;
}

struct move_answer {
  standing is;
  std::string_view in_words;
};
// By the number that scripts/move.lua gives.
constexpr std::array<move_answer, 7> move_answers{
    {{standing::foreign, ""},
     {standing::intact, "votes"},
     {standing::waits, "may have lost locks"},
     {standing::changed, "votes in the new set"},
     {standing::joining, "is in the new set and does not vote yet"},
     {standing::empty, "is empty"},
     {standing::settling, "was moved a moment ago"}}};

void take_answer(migrating_node& one, const std::optional<result<redis::reply>>& answer) {
  one.is = standing::unreachable;
  one.said = answer && !*answer ? answer->error().message : "no answer";
  if (!answer || !*answer) return;
  const auto fields = redis::elements_of(***answer);
  if (fields.empty() || fields[0]->type != redis::reply_kind::integer) return;
  const auto number = static_cast<std::size_t>(fields[0]->integer);
  if (number >= move_answers.size()) return;
  one.is = move_answers[number].is;
  one.said = move_answers[number].in_words;
  const bool may_know =
      one.is == standing::changed || one.is == standing::joining || one.is == standing::empty;
  one.knows_complete = may_know && fields.size() > 1 && fields[1]->integer == 1;
  if (one.is == standing::foreign) {
    one.said = "belongs to the set " +
               escape(fields.size() > 1 ? redis::text_of(*fields[1]) : std::string_view{});
  }
}

// What scripts/move.lua is to do.
constexpr std::string_view look = "look";
constexpr std::string_view announce = "announce";
constexpr std::string_view stay = "stay";
constexpr std::string_view leave = "leave";
constexpr std::string_view join = "join";
constexpr std::string_view complete = "complete";

// Tells the nodes that it concerns to do something, all at once.
template <class Concerned>
void ask(migrating_nodes& all, const node_set& from, const node_set& to, std::string_view what,
         core::time_point until, Concerned concerned) {
  const auto max_ttl = redis::milliseconds_text(to.config.max_ttl);
  const auto wall = std::to_string(runtime::wall_ms().count());
  for (const auto* set : {&from, &to}) {
    const auto asked = set->ask_all();
    const auto theirs = [&](const migrating_node& one) {
      return one.reached_by == set && concerned(one);
    };
    for (const auto& one : all) {
      if (!theirs(one)) continue;
      const auto wait_id = runtime::fresh_owner();
      asked->ask(one.place, {scripts::move,
                             {record_key},
                             {one.old_config, one.new_config, to.identity().description, max_ttl,
                              wall, what, wait_id.text()}});
    }
    const auto answers = asked->collect(until);
    for (auto& one : all) {
      if (theirs(one)) take_answer(one, answers[one.place]);
    }
  }
}

std::vector<core::changing_node> as_core(const migrating_nodes& all) {
  std::vector<core::changing_node> nodes;
  nodes.reserve(all.size());
  for (const auto& one : all)
    nodes.push_back({one.as, one.is});
  return nodes;
}

failure told(errc code, std::string message, const migrating_nodes& all) {
  std::vector<node_answer> answers;
  for (const auto& one : all)
    answers.push_back({one.name, one.said});
  return with_answers(code, std::move(message), std::move(answers));
}

constexpr std::string_view by_hand =
    "or, with every client stopped, wait until max_ttl is over, delete the record "
    "holdfast:{redlock}:node on every node, and begin the new set with `holdfast redlock init`: "
    "tokens then go on from clients' clocks";

result<void> allowed(const node_set& from, const node_set& to, const migrating_nodes& all) {
  const auto no = [&](errc code, const std::string& why) { return fail(told(code, why, all)); };
  switch (core::judge_change(as_core(all))) {
    case core::change_verdict::safe:
      return {};
    case core::change_verdict::too_much_at_once:
      return no(errc::store_refused,
                "too much at once, a majority of the new nodes need not meet one of the old: "
                "nothing was changed; go from " +
                    from.identity().description + " to " + to.identity().description +
                    " in several moves");
    case core::change_verdict::foreign_node:
      return no(errc::incompatible,
                "a node belongs to another set: nothing was changed; see that both lists are "
                "written as their clients write them");
    case core::change_verdict::newcomer_away:
      return no(errc::store_unreachable,
                "a new node does not answer: nothing was changed; start it first");
    case core::change_verdict::too_early:
      return no(errc::store_loading,
                "locks of the list before may still be held: nothing was changed; do this when "
                "max_ttl is over since the last move");
    case core::change_verdict::too_few_closed:
      return no(errc::store_unreachable,
                "a majority of the old nodes has to answer: nothing was changed; start them, " +
                    std::string{by_hand});
    case core::change_verdict::too_few_stay:
      break;
  }
  return no(errc::store_unreachable,
            "a majority of the new list has to be nodes of the old one that answer: nothing was "
            "changed; start them, " +
                std::string{by_hand});
}

// Whether `to` can follow `from` at all, as they are written. Gives `to` what it may leave out.
result<void> check_lists(const redlock_config& from, redlock_config& to) {
  const auto& old_node = from.nodes.front();
  if (to.nodes.front().database != old_node.database || to.prefix != from.prefix) {
    return fail(errc::invalid_argument,
                "both lists need the same database and prefix: locks elsewhere are other locks");
  }
  if (to.epoch <= from.epoch) {
    return fail(errc::invalid_argument,
                "the new list needs a higher epoch than " + std::to_string(from.epoch) +
                    ": write it as ?epoch=" + std::to_string(from.epoch + 1));
  }
  if (to.max_ttl != from.max_ttl) {
    return fail(errc::invalid_argument,
                "both lists need the same max_ttl: nodes wait for as long as old locks may last");
  }
  for (auto& one : to.nodes) {
    if (one.tls && old_node.tls && one.tls->is_default()) one.tls = old_node.tls;
    if (!one.user.empty() || !one.password.empty() || !one.password_file.empty()) continue;
    one.user = old_node.user;
    one.password = old_node.password;
    one.password_file = old_node.password_file;
  }
  return {};
}

result<void> change_over(const node_set& from, const node_set& to, core::time_point until) {
  // A node that forgets meanwhile that it changed over is back in the old list after max_ttl at the
  // earliest, and could grant there what new nodes did not wait for.
  const auto complete_before = core::after(runtime::now(), to.config.max_ttl);
  auto all = everybody(from, to);
  ask(all, from, to, look, until, [](const auto&) { return true; });
  if (auto ok = allowed(from, to, all); !ok) return ok;
  const bool was_complete =
      std::any_of(all.begin(), all.end(), [](const auto& one) { return one.knows_complete; });
  const auto stays = [](const migrating_node& one) { return one.as == part::stays; };
  const auto joins = [](const migrating_node& one) { return one.as == part::joins; };
  const auto again = [&] {
    return fail(told(errc::store_unreachable,
                     "some nodes have not changed over: do this again when they are back", all));
  };
  const auto all_answer = [&](auto which) {
    return std::none_of(all.begin(), all.end(), [&](const auto& one) {
      return which(one) && one.is == standing::unreachable;
    });
  };
  if (!was_complete) {
    ask(all, from, to, announce, until, joins);
    if (!all_answer(joins)) return again();
  }
  ask(all, from, to, stay, until, stays);
  ask(all, from, to, leave, until, [](const auto& one) { return one.as == part::leaves; });
  if (!core::enough_change_over(as_core(all))) return again();
  if (!was_complete) {
    ask(all, from, to, join, until, joins);
    if (!all_answer(joins)) return again();
  }
  if (runtime::now() >= complete_before) return again();
  ask(all, from, to, complete, until, [](const auto& one) { return one.as != part::leaves; });
  if (!all_answer(stays)) return again();
  return {};
}

}  // namespace

std::vector<holdfast::redlock::node_status> look_at_set(redlock_config of, core::time_point until) {
  const visit here{std::move(of)};
  const auto seen = here.set().survey(until, with_counters::no);
  std::vector<holdfast::redlock::node_status> all;
  for (std::size_t i = 0; i < seen.size(); ++i) {
    const bool votes = seen[i].report.is == report::votes;
    all.push_back({here.set().names()[i], votes, seen[i].said});
  }
  return all;
}

result<void> init_set(redlock_config of, core::time_point until) {
  const visit here{std::move(of)};
  const auto& set = here.set();
  const auto seen = set.survey(until, with_counters::yes);
  if (any(seen, report::foreign)) {
    return fail(refusal(
        errc::incompatible,
        "nothing was changed: a node has voted in another set than " + set.identity().description,
        set, seen));
  }
  if (any(seen, report::unreachable)) {
    return fail(refusal(errc::store_unreachable,
                        "nothing was changed: every node has to answer for this", set, seen));
  }
  node_set::record_scripts scripts(seen.size());
  for (std::size_t i = 0; i < seen.size(); ++i) {
    if (seen[i].report.is == report::votes) continue;
    scripts[i] = vouched_script(set.identity(), i, runtime::wall_ms(), seen);
  }
  const auto answers = set.run_on_records(scripts, until);
  std::vector<node_answer> refusals;
  for (std::size_t i = 0; i < seen.size(); ++i) {
    if (!scripts[i]) continue;
    const auto said = !answers[i]    ? std::string{"no answer"}
                      : !*answers[i] ? answers[i]->error().message
                                     : read_admitted(***answers[i]).value_or("");
    if (!said.empty()) refusals.push_back({set.names()[i], said});
  }
  if (refusals.empty()) return {};
  return fail(with_answers(errc::store_refused, "some nodes do not vote yet; run this again",
                           std::move(refusals)));
}

result<void> move_set(redlock_config from, redlock_config to, core::time_point until) {
  if (auto ok = check_lists(from, to); !ok) return ok;
  const visit old_list{std::move(from)};
  const visit new_list{std::move(to)};
  return change_over(old_list.set(), new_list.set(), until);
}

}  // namespace holdfast::stores::redlock
