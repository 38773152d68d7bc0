#include "sim/admission_model.hpp"

#include <algorithm>

#include "sim/vote_model.hpp"
#include "stores/redis/script_values.hpp"
#include "stores/redlock/node_set.hpp"

namespace holdfast::sim {

namespace {

using stores::redis::milliseconds_text;
using is = core::node_report::standing;

// As in stores/redlock/admitting.cpp.
constexpr core::duration look_patience = std::chrono::seconds{1};
constexpr core::duration look_pause_max = std::chrono::seconds{1};
constexpr core::duration look_pause_min = std::chrono::milliseconds{20};

}  // namespace

line_model::call admission_model::enrol_call(const quorum_set& set, const quorum_scripts& scripts) {
  return std::make_shared<script_request>(
      script_request{scripts.enrol,
                     {stores::redlock::record_key},
                     {set.config, set.described, milliseconds_text(set.max_ttl)},
                     true});
}

void admission_model::look_after_nodes() {
  if (std::exchange(looking_, true)) return;
  survey();
}

void admission_model::survey() {
  auto what = std::make_shared<look>();
  what->until = core::after(in_.now(), look_patience);
  const auto asked = question();
  const auto enrol = enrol_call(set_, scripts_);
  for (std::size_t i = 0; i < set_.nodes.size(); ++i)
    asked->ask(i, enrol);
  asked->gather(what->until, [this, what](const auto& answers) { read_survey(what, answers); });
}

void admission_model::read_survey(const current& what, const question_model::answers& answers) {
  auto& nodes = what->nodes;
  nodes.run_ids.resize(answers.size());
  for (std::size_t i = 0; i < answers.size(); ++i) {
    core::node_report report;
    if (answers[i] && *answers[i] && (*answers[i])->items.size() > 1) {
      const auto& fields = (*answers[i])->items;
      nodes.run_ids[i] = fields[1].text;
      const auto standing = fields[0].integer;
      report.is = standing == 1   ? is::votes
                  : standing == 0 ? is::blank
                  : standing == 2 ? is::restarted
                                  : is::foreign;
      if (report.is == is::votes) report.begun_with = fields.at(2).text;
      if (report.is == is::restarted) report.begun_with = fields.at(3).text;
      if (core::awaits_admission(report)) {
        report.waited = std::chrono::milliseconds{fields[2].integer};
        report.wait = fields[1].text;
      }
      // CONFIG GET in what is shipped: it does not change.
      report.loses_nothing = report.is == is::restarted && set_.nodes[i]->durable;
    }
    nodes.reports.push_back(report);
  }
  what->plan =
      core::plan_admission(nodes.reports, without_.waiting ? core::duration::zero() : set_.max_ttl);
  if (without_.wait_first) {
    // Planted: the counters are read when a node is first seen not to vote.
    for (std::size_t i = 0; i < answers.size(); ++i) {
      if (!core::awaits_admission(nodes.reports[i]) || read_early_.contains(nodes.run_ids[i]))
        continue;
      read_counters(what->until, [this, run_id = nodes.run_ids[i]](const counters* known) {
        if (known != nullptr) read_early_.emplace(run_id, *known);
      });
    }
  }
  admit_next(what);
}

void admission_model::admit_next(const current& what) {
  if (what->next == what->plan.admit.size()) return end(what);
  const auto& one = what->plan.admit[what->next];
  if (one.because != core::admission::grounds::recovered || without_.recovery) {
    return admit(what, {});
  }
  if (const auto early = read_early_.find(what->nodes.run_ids[one.node]);
      early != read_early_.end()) {
    return admit(what, early->second);
  }
  read_counters(what->until, [this, what](const counters* known) {
    if (known != nullptr) return admit(what, *known);
    ++what->next;
    admit_next(what);
  });
}

void admission_model::read_counters(core::time_point until,
                                    std::function<void(const counters*)> done) {
  const auto asked = question();
  const auto read = std::make_shared<script_request>(
      script_request{scripts_.counters, {stores::redlock::record_key}, {set_.config}, true});
  for (std::size_t i = 0; i < set_.nodes.size(); ++i)
    asked->ask(i, read);
  asked->gather(until, [this, done = std::move(done)](const auto& answers) {
    std::map<std::string, std::uint64_t> highest;
    std::size_t intact = 0;
    for (const auto& answer : answers) {
      if (!answer || !*answer || read_refusal(**answer)) continue;
      ++intact;
      const auto& fields = (*answer)->items;
      for (std::size_t f = 0; f + 1 < fields.size(); f += 2) {
        if (!stores::redlock::is_counter(fields[f].text)) continue;
        const auto value = stores::redis::read_number(fields[f + 1].text);
        auto& most = highest.try_emplace(fields[f].text, value).first->second;
        // Planted: of one node, which may be the one that knows least.
        most = without_.enough_sources ? std::min(most, value) : std::max(most, value);
      }
    }
    const std::size_t needed = without_.enough_sources ? 1 : core::majority_of(set_.nodes.size());
    if (intact < needed) return done(nullptr);
    counters pairs;
    for (const auto& [field, value] : highest) {
      pairs.push_back(field);
      pairs.push_back(std::to_string(value));
    }
    done(&pairs);
  });
}

void admission_model::admit(const current& what, const counters& least) {
  const auto& one = what->plan.admit[what->next];
  auto script = std::make_shared<script_request>(script_request{
      scripts_.admit,
      {stores::redlock::record_key},
      {set_.config, set_.described, milliseconds_text(set_.max_ttl), what->nodes.run_ids[one.node],
       one.because == core::admission::grounds::kept ? "kept" : "waited", "0", one.begun_with},
      true});
  script->args.insert(script->args.end(), least.begin(), least.end());
  const auto asked = question();
  asked->ask(one.node, script);
  // What fails is tried again: somebody still waits.
  asked->gather(what->until, [this, what](const auto&) {
    ++what->next;
    admit_next(what);
  });
}

void admission_model::end(const current& what) {
  const auto& all = what->nodes.reports;
  looking_ = std::any_of(all.begin(), all.end(), core::awaits_admission);
  if (!looking_) return;
  const auto pause =
      std::clamp(what->plan.again.value_or(look_pause_max), look_pause_min, look_pause_max);
  in_.at(core::after(in_.now(), pause), [this] { survey(); });
}

}  // namespace holdfast::sim
