#include "core/quorum_machine.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::core {

namespace {

bool is_failure(const vote& v) noexcept {
  return v.what == vote::kind::refused || v.what == vote::kind::failed;
}

std::string in_milliseconds(duration d) {
  return std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(d).count()) + " ms";
}

}  // namespace

quorum_machine::quorum_machine(const quorum_rule& rule) : rule_{rule}, places_(rule.nodes) {}

std::size_t quorum_machine::count(auto&& which) const {
  return static_cast<std::size_t>(std::count_if(places_.begin(), places_.end(), which));
}

quorum_machine::steps quorum_machine::start() {
  if (rule_.first.empty()) return ask_the_rest();
  steps all;
  for (const auto node : rule_.first) {
    places_.at(node).is = state::asked;
    all.push_back({quorum_step::verb::acquire, node, rule_.proposal});
  }
  return all;
}

quorum_machine::steps quorum_machine::ask_the_rest() {
  steps all;
  for (std::size_t i = 0; i < places_.size(); ++i) {
    if (was_asked(i)) continue;
    places_[i].is = state::asked;
    all.push_back({quorum_step::verb::acquire, i, rule_.proposal});
  }
  return all;
}

bool quorum_machine::asked_all() const noexcept {
  return count([](const place& p) { return p.is == state::unasked; }) == 0;
}

void quorum_machine::take(place& from, vote v) {
  highest_ = std::max(highest_, v.counter);
  switch (v.what) {
    case vote::kind::fresh:
      highest_ = std::max(highest_, rule_.proposal);
      from.is = state::holds;
      from.fresh = true;
      break;
    case vote::kind::stale:
      from.is = state::holds;
      break;
    case vote::kind::raised:
      highest_ = std::max(highest_, v.asked);
      from.raised = std::max(from.raised, v.asked);
      [[fallthrough]];
    case vote::kind::not_raised:
      if (v.asked == from.raising) from.raising = 0;
      break;
    case vote::kind::not_ours:
    case vote::kind::busy:
      from.is = state::out;
      break;
    case vote::kind::refused:
      // A node that refuses to raise has lost its right to vote, not necessarily our key.
      from.unsure = from.is == state::holds;
      from.is = state::out;
      break;
    case vote::kind::failed:
      from.unsure = from.is == state::holds || v.why.code == errc::outcome_unknown;
      from.is = state::out;
      break;
  }
  from.silent = false;
  from.said = std::move(v);
}

quorum_machine::steps quorum_machine::on_vote(std::size_t node, vote v, time_point now) {
  auto& from = places_.at(node);
  const bool grants = v.what == vote::kind::fresh || v.what == vote::kind::stale;
  take(from, std::move(v));
  if (!decided()) return evaluate(now);
  if (grants && outcome_ != quorum_outcome::granted) {
    return {{quorum_step::verb::release, node, 0}};
  }
  return {};
}

quorum_machine::steps quorum_machine::on_silence(std::size_t node, time_point now) {
  if (decided() || !waits_for(node)) return {};
  places_.at(node).silent = true;
  return evaluate(now);
}

quorum_machine::steps quorum_machine::on_delay() { return decided() ? steps{} : ask_the_rest(); }

quorum_machine::steps quorum_machine::on_give_up(time_point now) {
  if (decided()) return {};
  for (auto& one : places_)
    one.silent = one.silent || one.is == state::asked || one.raising != 0;
  // Whatever could be had has been had. Not evaluate(): it may raise once more, and what that is
  // granted later nobody would give back.
  const bool holds = count([](const place& p) { return p.is == state::holds; }) > 0;
  return refuse(holds && now >= rule_.valid_until ? quorum_outcome::late : kind_of_refusal());
}

bool quorum_machine::is_awaited(const place& one) noexcept {
  return !one.silent && (one.is == state::asked || (one.is == state::holds && one.raising != 0));
}

bool quorum_machine::waits_for(std::size_t node) const noexcept {
  return !decided() && is_awaited(places_[node]);
}

bool quorum_machine::waits_for_all() const noexcept {
  const auto there = count([&](const place& p) {
    return p.is == state::holds && (raise_to_ == 0 || p.raised == raise_to_);
  });
  return there + count(is_awaited) <= majority_of(places_.size());
}

bool quorum_machine::may_hold(std::size_t node) const noexcept {
  const auto& one = places_[node];
  return one.is == state::asked || one.is == state::holds || one.unsure;
}

quorum_machine::steps quorum_machine::evaluate(time_point now) {
  const auto majority = majority_of(places_.size());
  const auto holding = count([](const place& p) { return p.is == state::holds; });
  const auto coming = count([](const place& p) { return p.is == state::asked && !p.silent; });
  const auto left = count([](const place& p) { return p.is == state::unasked; });
  const bool hurry = coming == 0 || count([](const place& p) {
                                      return p.is == state::out && p.said && is_failure(*p.said);
                                    }) > 0;
  if (now >= rule_.valid_until) {
    return refuse(holding > 0 ? quorum_outcome::late : kind_of_refusal());
  }
  if (raise_to_ == 0) {
    if (count([](const place& p) { return p.is == state::holds && p.fresh; }) >= majority) {
      outcome_ = quorum_outcome::granted;
      token_ = rule_.proposal;
      return {};
    }
    if (holding >= majority) return raise_higher();
    if (holding + coming + left < majority) return refuse(kind_of_refusal());
    return holding + coming < majority && hurry ? ask_the_rest() : steps{};
  }
  const auto raised =
      count([&](const place& p) { return p.is == state::holds && p.raised == raise_to_; });
  if (raised >= majority) {
    outcome_ = quorum_outcome::granted;
    token_ = raise_to_;
    return {};
  }
  auto more = raise_newcomers();
  const auto rising = count(
      [&](const place& p) { return p.is == state::holds && p.raising == raise_to_ && !p.silent; });
  if (raised + rising + coming >= majority) return more;
  if (left > 0) {
    const auto others = ask_the_rest();
    more.insert(more.end(), others.begin(), others.end());
    return more;
  }
  const auto reachable = count([](const place& p) { return p.is == state::holds && !p.silent; });
  if (reachable < majority || raises_ >= raises_max) return refuse(kind_of_refusal());
  return raise_higher();
}

// Those that granted while the others were being raised.
quorum_machine::steps quorum_machine::raise_newcomers() {
  steps all;
  for (std::size_t i = 0; i < places_.size(); ++i) {
    auto& one = places_[i];
    if (one.is != state::holds || one.asked_to_raise) continue;
    one.asked_to_raise = true;
    one.raising = raise_to_;
    all.push_back({quorum_step::verb::raise, i, raise_to_});
  }
  return all;
}

quorum_machine::steps quorum_machine::raise_higher() {
  ++raises_;
  raise_to_ = std::max(highest_, rule_.proposal) + 1;
  for (auto& one : places_)
    one.asked_to_raise = false;
  return raise_newcomers();
}

quorum_outcome quorum_machine::kind_of_refusal() const noexcept {
  // One that has not answered yet counts as working: with a broken one beside it, the first that is
  // busy decides, and that is contention.
  const auto working = count([](const place& p) {
    if (p.is != state::out) return !p.silent;
    return p.said && !is_failure(*p.said);
  });
  return working >= majority_of(places_.size()) ? quorum_outcome::busy : quorum_outcome::failed;
}

quorum_machine::steps quorum_machine::refuse(quorum_outcome how) {
  outcome_ = how;
  steps all;
  for (std::size_t i = 0; i < places_.size(); ++i) {
    if (may_hold(i)) all.push_back({quorum_step::verb::release, i, 0});
  }
  return all;
}

busy quorum_machine::met() const {
  busy who;
  std::vector<duration> remaining;
  std::size_t most = 0;
  const auto same = [](const holdfast::holder& a, const holdfast::holder& b) {
    return a.foreign == b.foreign && a.value == b.value && a.host == b.host && a.pid == b.pid &&
           a.label == b.label;
  };
  for (const auto& one : places_) {
    if (!one.said || one.said->what != vote::kind::busy) continue;
    if (one.said->remaining) remaining.push_back(*one.said->remaining);
    const auto alike = count([&](const place& p) {
      return p.said && p.said->what == vote::kind::busy && same(p.said->holder, one.said->holder);
    });
    if (alike <= most) continue;
    most = alike;
    who.holder = one.said->holder;
  }
  std::sort(remaining.begin(), remaining.end());
  const auto majority = majority_of(places_.size());
  const auto free = count([](const place& p) { return p.is == state::holds; });
  const auto needed = free < majority ? majority - free : 1;
  if (remaining.size() >= needed) who.remaining = remaining[needed - 1];
  return who;
}

failure quorum_machine::why(std::span<const std::string> names, duration node_timeout) const {
  failure what;
  const auto majority = majority_of(places_.size());
  const auto holding = count([](const place& p) { return p.is == state::holds && !p.silent; });
  std::string said = std::to_string(holding) + " of " + std::to_string(places_.size()) + " granted";
  std::size_t perhaps = 0;
  std::vector<errc> codes;
  for (std::size_t i = 0; i < places_.size(); ++i) {
    const auto& one = places_[i];
    std::string text;
    if (one.is == state::unasked) {
      text = "not asked";
    } else if (one.is == state::asked || one.silent) {
      text = one.silent ? "no answer in " + in_milliseconds(node_timeout)
                        : std::string{"not waited for"};
      codes.push_back(errc::store_unreachable);
    } else if (one.is == state::holds) {
      text = "granted";
    } else if (one.said->what == vote::kind::busy) {
      text = "held by another";
    } else if (one.said->what == vote::kind::not_ours) {
      text = "lost our key";
    } else {
      text = one.said->what == vote::kind::refused ? "refused: " : "";
      text += one.said->why.message;
      codes.push_back(one.said->why.code == errc::outcome_unknown ? errc::store_unreachable
                                                                  : one.said->why.code);
    }
    perhaps += may_hold(i) ? 1 : 0;
    if (text != "granted") {
      said += "; " + names[i] + (text.starts_with("refused") ? " " : ": ") + text;
    }
    what.nodes.push_back({names[i], std::move(text)});
  }
  // What most of the broken nodes say; what passes by itself only if nothing else is wrong.
  const auto often = [&](errc code) { return std::count(codes.begin(), codes.end(), code); };
  what.code = errc::store_unreachable;
  for (const auto code : codes) {
    if (often(code) > often(what.code)) what.code = code;
  }
  if (what.code == errc::store_unreachable && perhaps >= majority) {
    what.code = errc::outcome_unknown;
  }
  what.message = said;
  return what;
}

}  // namespace holdfast::core
