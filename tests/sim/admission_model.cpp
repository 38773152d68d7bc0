#include "sim/admission_model.hpp"

#include <algorithm>

#include "redlock_scripts.hpp"
#include "stores/redlock/node_set.hpp"

namespace holdfast::sim {

namespace {

namespace redlock = stores::redlock;
using stores::redis::reply_kind;
using stores::redis::reply_value;

reply_value as_shipped(const reply& said) {
  constexpr auto kind = [](reply::kind of) {
    switch (of) {
      case reply::kind::integer:
        return reply_kind::integer;
      case reply::kind::text:
        return reply_kind::text;
      case reply::kind::status:
        return reply_kind::status;
      case reply::kind::error:
        return reply_kind::error;
      case reply::kind::array:
        return reply_kind::array;
      case reply::kind::nil:
        break;
    }
    return reply_kind::nothing;
  };
  reply_value value{kind(said.type), said.integer, said.text, {}};
  for (const auto& one : said.items)
    value.items.push_back(as_shipped(one));
  return value;
}

redlock::set_identity identity_of(const quorum_set& set) {
  return {std::vector<std::string>(set.nodes.size(), set.config), set.described, 1, set.max_ttl};
}

core::admission_rule rule_of(const quorum_set& set, const left_out& without) {
  core::admission_rule rule{set.nodes.size()};
  if (without.enough_sources) rule.intact_min = 1;
  return rule;
}

}  // namespace

admission_model::admission_model(process& in, const quorum_set& set,
                                 const round_model::lines& calls, const quorum_scripts& scripts,
                                 const left_out& without, std::uint64_t seed)
    : in_{in},
      set_{set},
      calls_{calls},
      scripts_{scripts},
      without_{without},
      random_{seed, 13},
      rejoining_{identity_of(set), rule_of(set, without), [this] {
                   const auto high = random_.bits();
                   return std::string{core::owner_id::from_bits(high, random_.bits()).text()};
                 }} {}

std::chrono::milliseconds admission_model::wall() const {
  return std::chrono::milliseconds{in_.wall_us() / 1000};
}

line_model::call admission_model::as_call(redlock::record_script script) const {
  const auto which = script.which == &redlock::scripts::admit ? scripts_.admit : scripts_.standing;
  return std::make_shared<script_request>(
      script_request{which, {redlock::record_key}, std::move(script.args), true});
}

line_model::call admission_model::look_call(std::size_t node) const {
  return as_call(redlock::look_script(identity_of(set_), node, wall(), redlock::with_counters::no));
}

bool admission_model::has_to_wait(const reply& standing) {
  return core::has_to_wait(redlock::read_standing(as_shipped(standing), 1).report);
}

void admission_model::look_after_nodes() {
  if (std::exchange(looking_, true)) return;
  perform(rejoining_.start(in_.now(), wall()));
}

void admission_model::perform(step next) {
  using verb = step::verb;
  switch (next.what) {
    case verb::ask:
      return ask(next);
    case verb::pause:
      return in_.at(next.until, [this] { perform(rejoining_.on_time(in_.now(), wall())); });
    case verb::done:
      looking_ = false;
  }
}

void admission_model::ask(const step& what) {
  const auto asked = std::make_shared<question_model>(in_, calls_, set_.node_timeout,
                                                      redlock::silent_nodes::awaited);
  reading_ = false;
  for (std::size_t i = 0; i < what.asks.size(); ++i) {
    if (!what.asks[i]) continue;
    reading_ = reading_ || what.asks[i]->args[4] == "counters";
    asked->ask(i, as_call(*what.asks[i]));
  }
  asked->gather(what.until, [this](const auto& answers) { resume(answers); });
}

void admission_model::resume(const question_model::answers& answers) {
  std::vector<reply_value> said(answers.size());
  for (std::size_t i = 0; i < answers.size(); ++i) {
    if (answers[i] && *answers[i]) said[i] = as_shipped(**answers[i]);
  }
  if (without_.wait_first) answer_from_early(said);
  redlock::rejoining::answers read(answers.size());
  for (std::size_t i = 0; i < answers.size(); ++i)
    read[i] = said[i].type == reply_kind::nothing ? nullptr : &said[i];
  perform(rejoining_.on_answers(read, in_.now(), wall()));
}

// Planted: the counters are those of when a node was first seen to wait.
void admission_model::answer_from_early(std::vector<reply_value>& said) {
  for (const auto& one : said) {
    const auto waits = redlock::read_standing(one, 1).report.wait;
    if (waits.empty()) continue;
    const auto known = early_.find(waits);
    if (reading_ && known != early_.end()) {
      said = known->second;
      return;
    }
    if (reading_ || known != early_.end()) continue;
    // Seen for the first time: reads beside the protocol, at once.
    std::vector<reply_value> now(said.size());
    for (std::size_t i = 0; i < said.size(); ++i) {
      if (said[i].type == reply_kind::nothing) continue;
      const auto look =
          as_call(redlock::look_script(identity_of(set_), i, wall(), redlock::with_counters::yes));
      if (set_.nodes[i]->up()) now[i] = as_shipped(set_.nodes[i]->run(*look));
    }
    early_.emplace(waits, std::move(now));
  }
}

}  // namespace holdfast::sim
