#include "stores/redlock/rejoining.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include <holdfast/status.hpp>

#include "core/planted.hpp"
#include "redlock_scripts.hpp"
#include "stores/redis/script_values.hpp"

namespace holdfast::stores::redlock {

namespace {

using core::node_report;
using core::planted;
using core::planted_bug;
using redis::elements_of;
using redis::text_of;
using std::chrono::milliseconds;
using is = node_report::standing;

constexpr std::size_t fields_before_counters = 7;

std::string in_words(const node_report& one, std::string_view nodes) {
  const auto wait = one.wait.empty() ? "begins to wait for that when a client uses it"
                    : one.left <= core::duration::zero() ? "votes again in a moment"
                                                         : "votes again in " + in_seconds(one.left);
  switch (one.is) {
    case is::votes:
      return one.moved == node_report::move::begun
                 ? "votes; the move to this list is not finished: run it again"
                 : "votes";
    case is::blank:
      return "is empty, and may have lost locks; " + wait;
    case is::restarted:
      return "was restarted, and may have lost locks; " + wait;
    case is::foreign:
      return "belongs to the set " + escape(nodes);
    case is::left:
      return "was taken out of its set by a move to " + escape(nodes);
    case is::unreachable:
      break;
  }
  return "no answer";
}

constexpr std::string_view before_epoch = " (epoch ";

// Of a set's description.
std::uint64_t epoch_of(std::string_view set) {
  const auto at = set.rfind(before_epoch);
  if (at == std::string_view::npos) return 0;
  set.remove_prefix(at + before_epoch.size());
  return redis::read_number(set.substr(0, set.find(',')));
}

struct name_of_standing {
  std::string_view text;
  is value;
};
constexpr std::array<name_of_standing, 5> standings{{{"votes", is::votes},
                                                     {"blank", is::blank},
                                                     {"restarted", is::restarted},
                                                     {"foreign", is::foreign},
                                                     {"left", is::left}}};

// Pairs of a counter's field and the highest value that any of these nodes has.
std::vector<std::string> highest_counters(std::span<const node_standing> all, auto&& which) {
  std::map<std::string, std::uint64_t> highest;
  for (const auto& one : all) {
    if (!which(one.report)) continue;
    for (const auto& [field, value] : one.counters) {
      auto& most = highest[field];
      most = std::max(most, value);
    }
  }
  std::vector<std::string> pairs;
  for (const auto& [field, value] : highest) {
    pairs.push_back(field);
    pairs.push_back(std::to_string(value));
  }
  return pairs;
}

record_script admit_script(const set_identity& set, std::size_t node, milliseconds wall,
                           std::string wait, std::uint64_t least,
                           const std::vector<std::string>& counters) {
  record_script all{&scripts::admit,
                    {set.configs[node], set.description, redis::milliseconds_text(set.max_ttl),
                     std::to_string(wall.count()), std::move(wait), std::to_string(least)}};
  all.args.insert(all.args.end(), counters.begin(), counters.end());
  return all;
}

std::vector<node_report> reports_of(std::span<const node_standing> all) {
  std::vector<node_report> reports;
  reports.reserve(all.size());
  for (const auto& one : all)
    reports.push_back(one.report);
  return reports;
}

bool is_of_the_set(const node_report& one) { return one.is == is::votes || core::has_to_wait(one); }

}  // namespace

std::string describe_set(std::span<const std::string> sorted_names, unsigned epoch,
                         core::duration max_ttl) {
  std::string text;
  for (const auto& one : sorted_names)
    text += (text.empty() ? "" : ",") + one;
  return text + std::string{before_epoch} + std::to_string(epoch) + ", max_ttl " +
         redis::milliseconds_text(max_ttl) + " ms)";
}

record_script standing_script(const set_identity& set, std::size_t node, milliseconds wall,
                              std::string wait_id, with_counters counters) {
  return {&scripts::standing,
          {set.configs[node], redis::milliseconds_text(set.max_ttl), std::to_string(wall.count()),
           std::move(wait_id), counters == with_counters::yes ? "counters" : ""}};
}

record_script vouched_script(const set_identity& set, std::size_t node, milliseconds wall,
                             std::span<const node_standing> all) {
  return admit_script(set, node, wall, {},
                      core::least_counter_at_once(reports_of(all), set.max_ttl),
                      highest_counters(all, is_of_the_set));
}

node_standing read_standing(const redis::reply_value& answer, unsigned epoch) {
  const auto fields = elements_of(answer);
  node_standing one;
  one.said = "an answer that makes no sense";
  if (fields.size() < fields_before_counters) return one;
  const auto known = std::find_if(standings.begin(), standings.end(), [&](const auto& standing) {
    return standing.text == text_of(*fields[0]);
  });
  if (known == standings.end()) return one;
  auto& report = one.report;
  report.is = known->value;
  report.clock = redis::read_time(*fields[1], *fields[2]);
  const auto moved = text_of(*fields[3]);
  report.moved = moved == "complete" ? node_report::move::complete
                 : moved == "begun"  ? node_report::move::begun
                                     : node_report::move::none;
  report.later = epoch_of(text_of(*fields[6])) > epoch;
  if (core::has_to_wait(report)) {
    report.wait = text_of(*fields[4]);
    report.left = milliseconds{fields[5]->integer};
  }
  one.said = in_words(report, text_of(*fields[6]));
  for (std::size_t i = fields_before_counters; i + 1 < fields.size(); i += 2) {
    one.counters[std::string{text_of(*fields[i])}] = redis::read_number(text_of(*fields[i + 1]));
  }
  return one;
}

std::optional<std::string> read_admitted(const redis::reply_value& answer) {
  const auto fields = elements_of(answer);
  if (!fields.empty() && fields[0]->integer == 1) return std::nullopt;
  return fields.size() > 1 ? std::string{text_of(*fields[1])} : "an answer that makes no sense";
}

rejoining::step rejoining::start(core::time_point now, milliseconds wall) {
  return ask_all(stage::looking, now, wall);
}

// Every look keeps up the waits: a clock that was set back moves their starts.
rejoining::step rejoining::ask_all(stage what, core::time_point now, milliseconds wall) {
  at_ = what;
  step next{step::verb::ask, core::after(now, look_patience)};
  for (std::size_t i = 0; i < set_.configs.size(); ++i) {
    next.asks.emplace_back(
        standing_script(set_, i, wall, fresh_id_(),
                        what == stage::reading ? with_counters::yes : with_counters::no));
  }
  return next;
}

rejoining::step rejoining::on_answers(const answers& said, core::time_point now,
                                      milliseconds wall) {
  // What fails is tried again: the node still waits.
  if (at_ == stage::admitting)
    return {step::verb::pause, core::after(now, look_pause_min), {}, true};
  const auto before = std::exchange(seen_, std::vector<node_standing>(said.size()));
  for (std::size_t i = 0; i < said.size(); ++i) {
    if (said[i] != nullptr) seen_[i] = read_standing(*said[i], set_.epoch);
    const bool keeps = planted(planted_bug::wait_first) && at_ == stage::looking;
    if (keeps && i < before.size()) seen_[i].counters = before[i].counters;
  }
  return at_ == stage::looking ? after_look(now, wall) : after_reading(now, wall);
}

rejoining::step rejoining::pause(core::time_point now, bool lets_in) const {
  auto left = look_pause_max;
  for (const auto& one : seen_) {
    if (core::has_to_wait(one.report) && one.report.left > core::duration::zero()) {
      left = std::min(left, one.report.left);
    }
  }
  return {step::verb::pause, core::after(now, std::max(left, look_pause_min)), {}, lets_in};
}

rejoining::step rejoining::after_look(core::time_point now, milliseconds wall) {
  over_.assign(seen_.size(), {});
  bool any_waits = false;
  bool any_over = false;
  for (std::size_t i = 0; i < seen_.size(); ++i) {
    const auto& one = seen_[i].report;
    if (!core::has_to_wait(one)) continue;
    any_waits = true;
    if (one.left > core::duration::zero()) continue;
    any_over = true;
    over_[i] = one.wait;
  }
  // Only looks that follow each other count as a first and a second one.
  if (!any_over) admission_ = core::admission{rule_};
  if (!any_waits) return {step::verb::done};
  if (planted(planted_bug::wait_first)) {
    const bool known = std::any_of(seen_.begin(), seen_.end(),
                                   [](const auto& one) { return !one.counters.empty(); });
    return !known     ? ask_all(stage::reading, now, wall)
           : any_over ? after_reading(now, wall)
                      : pause(now, false);
  }
  // Counters are read when the wait is over: before, they may still rise by votes of this node.
  return any_over ? ask_all(stage::reading, now, wall) : pause(now, false);
}

rejoining::step rejoining::after_reading(core::time_point now, milliseconds wall) {
  const bool too_early =
      std::all_of(over_.begin(), over_.end(), [](const std::string& one) { return one.empty(); });
  if (planted(planted_bug::wait_first) && too_early) return pause(now, false);
  const auto source = admission_.judge(reports_of(seen_), now);
  if (source == core::counter_source::nobody) return pause(now, admission_.needs_another_look());
  const bool from_intact = source == core::counter_source::intact;
  const auto least = from_intact ? 0 : core::least_counter(reports_of(seen_), set_.max_ttl);
  const auto counters = from_intact ? highest_counters(seen_, core::is_intact)
                                    : highest_counters(seen_, is_of_the_set);
  at_ = stage::admitting;
  step next{step::verb::ask, core::after(now, look_patience)};
  next.asks.resize(seen_.size());
  for (std::size_t i = 0; i < seen_.size(); ++i) {
    if (over_[i].empty() || seen_[i].report.wait != over_[i]) continue;
    next.asks[i] = admit_script(set_, i, wall, over_[i], least, counters);
  }
  return next;
}

}  // namespace holdfast::stores::redlock
