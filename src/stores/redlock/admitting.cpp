// What node_set does for nodes that may not vote: looks at them, and lets in those who may be. Who
// that is, core/admission.hpp decides; a node checks it once more (scripts/admit.lua).
#include <algorithm>
#include <array>
#include <map>

#include "redlock_scripts.hpp"
#include "runtime/clock.hpp"
#include "stores/redis/script_values.hpp"
#include "stores/redlock/node_set.hpp"

namespace holdfast::stores::redlock {

namespace {

using redis::command;
using redis::elements_of;
using redis::text_of;
using std::chrono::milliseconds;

// How long a look at the nodes may take, and the most between two while one of them may not vote.
constexpr core::duration look_patience = std::chrono::seconds{1};
constexpr core::duration look_pause_max = std::chrono::seconds{1};
constexpr core::duration look_pause_min = milliseconds{20};

using highest_counters = std::map<std::string, std::uint64_t, std::less<>>;

void take_higher(highest_counters& highest, const redis::reply_value& record) {
  const auto fields = elements_of(record);
  for (std::size_t f = 0; f + 1 < fields.size(); f += 2) {
    const auto field = text_of(*fields[f]);
    if (!is_counter(field)) continue;
    auto& most = highest[std::string{field}];
    most = std::max(most, redis::read_number(text_of(*fields[f + 1])));
  }
}

node_set::counters as_pairs(const highest_counters& highest) {
  node_set::counters pairs;
  for (const auto& [field, value] : highest) {
    pairs.push_back(field);
    pairs.push_back(std::to_string(value));
  }
  return pairs;
}

}  // namespace

void node_set::look_after_nodes() {
  if (looking_.exchange(true)) return;
  const bool queued = background_->run([weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->admit_those_who_may();
  });
  if (!queued) looking_ = false;
}

std::vector<node_set::standing> node_set::survey(core::time_point until) const {
  const auto answers = ask_every([&](std::size_t i) { return enrol_request(i); }, until);
  std::vector<standing> all(nodes_.size());
  using is = core::node_report::standing;
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    auto& one = all[i];
    one.said = "no answer";
    if (!answers[i]) continue;
    if (!*answers[i]) {
      one.said = answers[i]->error().message;
      continue;
    }
    const auto fields = elements_of(***answers[i]);
    if (fields.size() < 2) continue;
    one.run_id = text_of(*fields[1]);
    const auto waited =
        fields.size() > 2 && fields[2]->type == redis::reply_kind::integer ? fields[2]->integer : 0;
    one.report.waited = milliseconds{waited};
    const auto text_at = [&](std::size_t field) {
      return fields.size() > field ? text_of(*fields[field]) : std::string_view{};
    };
    switch (fields[0]->integer) {
      case 1:
        one.report.is = is::votes;
        one.said = "votes";
        one.report.begun_with = text_at(2);
        break;
      case 0:
        one.report.is = is::blank;
        one.said = "is empty, for " + std::to_string(waited / 1000) + " s";
        one.report.wait = one.run_id;
        break;
      case 2:
        one.report.is = is::restarted;
        one.said = "was restarted, " + std::to_string(waited / 1000) + " s ago";
        one.report.loses_nothing = loses_nothing(i, until);
        one.report.wait = one.run_id;
        one.report.begun_with = text_at(3);
        break;
      default:
        one.report.is = is::foreign;
        one.voted_elsewhere = fields.size() > 3 && fields[3]->integer == 1;
        one.said = "belongs to the set " + escape(text_at(2));
        one.report.wait = one.run_id;
    }
  }
  return all;
}

std::vector<core::node_report> node_set::reports_of(const std::vector<standing>& seen) {
  std::vector<core::node_report> all;
  all.reserve(seen.size());
  for (const auto& one : seen)
    all.push_back(one.report);
  return all;
}

// Every write is on disk before it is answered. What keeps us from knowing counts as no.
bool node_set::loses_nothing(std::size_t node, core::time_point until) const {
  const auto setting = [&](std::string_view name) -> std::string {
    command get{3};
    get.arg("CONFIG").arg("GET").arg(name);
    const auto asked = ask_all();
    asked->ask(node, request{get});
    const auto answers = asked->gather(until);
    if (!answers[node] || !*answers[node]) return {};
    const auto fields = elements_of(***answers[node]);
    return fields.size() < 2 ? std::string{} : std::string{text_of(*fields[1])};
  };
  return setting("appendonly") == "yes" && setting("appendfsync") == "always";
}

result<node_set::counters> node_set::counters_known(core::time_point until) const {
  const auto read = [&](std::size_t i) {
    const std::array<std::string_view, 1> args{nodes_[i].config};
    return request{scripts::counters, record_keys, args};
  };
  const auto answers = ask_every(read, until);
  highest_counters highest;
  std::size_t intact = 0;
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    if (!answers[i] || !*answers[i]) continue;
    const auto& answer = ***answers[i];
    if (read_refusal(answer, nodes_[i].name, set())) continue;
    ++intact;
    take_higher(highest, answer);
  }
  if (intact >= majority()) return as_pairs(highest);
  return fail(errc::store_unreachable,
              "only " + std::to_string(intact) + " of " + std::to_string(nodes_.size()) +
                  " nodes have kept their counters: " + std::to_string(majority()) + " are needed");
}

result<node_set::counters> node_set::counters_left(core::time_point until) const {
  command get{2};
  get.arg("HGETALL").arg(record_key);
  const auto answers = ask_every([&](std::size_t) { return request{get}; }, until);
  highest_counters highest;
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    if (!answers[i]) return fail(errc::store_unreachable, "no answer from " + nodes_[i].name);
    if (!*answers[i]) return fail(answers[i]->error());
    take_higher(highest, ***answers[i]);
  }
  return as_pairs(highest);
}

result<void> node_set::admit(std::size_t node, const standing& seen, admit_mode mode,
                             const counters& least, const std::string& begun_with,
                             core::time_point until) const {
  const auto max_ttl = redis::milliseconds_text(config.max_ttl);
  std::vector<std::string_view> args{nodes_[node].config,
                                     description,
                                     max_ttl,
                                     seen.run_id,
                                     mode == admit_mode::kept          ? "kept"
                                     : mode == admit_mode::vouched_for ? "new"
                                                                       : "waited",
                                     mode == admit_mode::recovered ? ahead_us_max : "0",
                                     begun_with};
  args.insert(args.end(), least.begin(), least.end());
  const auto asked = ask_all();
  asked->ask(node, {scripts::admit, record_keys, args});
  const auto answers = asked->gather(until);
  if (!answers[node]) {
    return fail(errc::outcome_unknown, "no answer from " + nodes_[node].name);
  }
  if (!*answers[node]) return fail(answers[node]->error());
  const auto fields = elements_of(***answers[node]);
  if (!fields.empty() && fields[0]->integer == 1) return {};
  return fail(errc::store_refused,
              nodes_[node].name + ": " +
                  std::string{fields.size() > 1 ? text_of(*fields[1]) : std::string_view{}});
}

void node_set::admit_those_who_may() {
  const auto until = core::after(runtime::now(), look_patience);
  const auto seen = survey(until);
  const auto reports = reports_of(seen);
  const bool somebody_waits = std::any_of(reports.begin(), reports.end(), core::awaits_admission);
  const auto plan = core::plan_admission(reports, config.max_ttl);
  counters_lost_ = plan.counters_lost;
  using grounds = core::admission::grounds;
  for (const auto& one : plan.admit) {
    counters least;
    if (one.because == grounds::recovered) {
      auto known = counters_known(until);
      if (!known) continue;
      least = std::move(*known);
    }
    // What fails is tried again: somebody still waits.
    static_cast<void>(admit(one.node, seen[one.node],
                            one.because == grounds::kept ? admit_mode::kept : admit_mode::waited,
                            least, one.begun_with, until));
  }
  const auto pause =
      std::clamp(plan.again.value_or(look_pause_max), look_pause_min, look_pause_max);
  const bool again = somebody_waits && background_->run_at(core::after(runtime::now(), pause),
                                                           [weak = weak_from_this()] {
                                                             if (const auto self = weak.lock()) {
                                                               self->admit_those_who_may();
                                                             }
                                                           });
  if (!again) looking_ = false;
}

}  // namespace holdfast::stores::redlock
