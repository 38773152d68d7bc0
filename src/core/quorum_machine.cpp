#include "core/quorum_machine.hpp"

#include <algorithm>
#include <utility>

#include "core/by_node.hpp"
#include "core/planted.hpp"

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

quorum_machine::steps quorum_machine::ask(std::uint64_t proposal, time_point at) {
  proposal_ = proposal;
  asked_at_ = at;
  steps all;
  for (std::size_t i = 0; i < places_.size(); ++i)
    all.push_back({quorum_step::verb::acquire, i, proposal});
  return all;
}

void quorum_machine::take(place& from, vote v) {
  if (v.what == vote::kind::fresh) v.counter = proposal_;
  highest_ = std::max(highest_, v.counter);
  const bool was_unsure = std::exchange(from.unsure, false);
  switch (v.what) {
    case vote::kind::fresh:
      from.is = state::holds;
      from.token = proposal_;
      break;
    case vote::kind::stale:
      from.is = state::holds;
      break;
    case vote::kind::raised:
      highest_ = std::max(highest_, v.asked);
      from.token = std::max(from.token, v.asked);
      [[fallthrough]];
    case vote::kind::not_raised:
      if (v.asked == from.raising) from.raising = 0;
      from.unsure = was_unsure;  // it failed an earlier one, and has our key all the same
      break;
    case vote::kind::busy:
    case vote::kind::not_ours:
      from.is = state::out;
      break;
    case vote::kind::refused:
      // A node that refuses to raise has lost its right to vote, not necessarily our key.
      from.unsure = was_unsure || from.is == state::holds;
      from.is = state::out;
      break;
    case vote::kind::failed:
      from.unsure = was_unsure || from.is == state::holds || v.why.code == errc::outcome_unknown;
      from.is = state::out;
      break;
  }
  from.silent = false;
  from.said = std::move(v);
}

quorum_machine::steps quorum_machine::on_vote(std::size_t node, vote v, time_point now) {
  const bool grants = v.what == vote::kind::fresh || v.what == vote::kind::stale;
  take(places_.at(node), std::move(v));
  if (!decided()) return evaluate(now);
  if (grants && over()) return {{quorum_step::verb::release, node, 0}};
  return {};
}

quorum_machine::steps quorum_machine::on_silence(std::size_t node, time_point now) {
  if (decided() || !waits_for(node)) return {};
  places_.at(node).silent = true;
  return evaluate(now);
}

quorum_machine::steps quorum_machine::on_give_up(time_point now) {
  if (decided()) return {};
  for (auto& one : places_)
    one.silent = one.silent || one.is == state::asked || one.raising != 0;
  // Whatever could be had has been had. Not evaluate(): it may raise once more, and what that is
  // granted later nobody would give back.
  const bool late = holding() > 0 && now >= after(asked_at_, rule_.ttl);
  return give_back(late ? quorum_outcome::late : kind_of_refusal());
}

bool quorum_machine::is_awaited(const place& one) noexcept {
  return !one.silent && (one.is == state::asked || (one.is == state::holds && one.raising != 0));
}

bool quorum_machine::waits_for(std::size_t node) const noexcept {
  return !decided() && is_awaited(places_[node]);
}

bool quorum_machine::waits_for_all() const noexcept {
  const auto there = raise_to_ == 0 ? holding() : holding_with(raise_to_);
  return there + count(is_awaited) <= majority_of(places_.size());
}

bool quorum_machine::may_hold(std::size_t node) const noexcept {
  const auto& one = places_[node];
  return one.is == state::asked || one.is == state::holds || one.unsure;
}

// One that has not answered yet counts: with a broken one beside it, the first that is busy
// decides, and that is contention.
bool quorum_machine::majority_works() const noexcept {
  return count([](const place& p) {
           return p.is != state::out ? !p.silent : p.said && !is_failure(*p.said);
         }) >= majority_of(places_.size());
}

std::size_t quorum_machine::holding() const noexcept {
  return count([](const place& p) { return p.is == state::holds; });
}

std::size_t quorum_machine::holding_with(std::uint64_t token) const noexcept {
  const bool any_raise = planted(planted_bug::own_raise) && token == raise_to_ && token != 0;
  return count([&](const place& p) {
    return p.is == state::holds && (p.token == token || (any_raise && p.token > proposal_));
  });
}

quorum_machine::steps quorum_machine::evaluate(time_point now) {
  const auto majority = majority_of(places_.size());
  const auto ours = holding();
  const auto coming = count([](const place& p) { return p.is == state::asked && !p.silent; });
  if (now >= after(asked_at_, rule_.ttl)) {
    return give_back(ours > 0 ? quorum_outcome::late : kind_of_refusal());
  }
  if (raise_to_ == 0) {
    if (holding_with(proposal_) >= majority) return conclude(proposal_);
    if (ours >= majority) return raise_higher();
    return ours + coming < majority ? give_back(kind_of_refusal()) : steps{};
  }
  const auto raised = holding_with(raise_to_);
  if (raised >= majority) return conclude(raise_to_);
  auto more = raise_newcomers();
  const auto rising = count(
      [&](const place& p) { return p.is == state::holds && p.raising == raise_to_ && !p.silent; });
  if (raised + rising + coming >= majority) return more;
  const auto reachable = count([](const place& p) { return p.is == state::holds && !p.silent; });
  if (reachable < majority || raises_ >= raises_max) return give_back(kind_of_refusal());
  return raise_higher();
}

quorum_machine::steps quorum_machine::conclude(std::uint64_t token) {
  granted_ = {fencing_token{token}, rule_.ttl, asked_at_};
  outcome_ = quorum_outcome::granted;
  return {};
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
  raise_to_ = highest_ + 1;
  for (auto& one : places_)
    one.asked_to_raise = false;
  return raise_newcomers();
}

quorum_outcome quorum_machine::kind_of_refusal() const noexcept {
  return majority_works() ? quorum_outcome::busy : quorum_outcome::failed;
}

quorum_machine::steps quorum_machine::give_back(quorum_outcome how) {
  outcome_ = how;
  if (how == quorum_outcome::late) granted_ = {{}, rule_.ttl, asked_at_};
  steps all;
  for (std::size_t i = 0; i < places_.size(); ++i) {
    const bool silent = !places_[i].said || places_[i].said->what == vote::kind::failed;
    if (planted(planted_bug::silent_release) && silent) continue;
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
  const auto is_busy = [](const place& p) {
    return p.is == state::out && p.said && p.said->what == vote::kind::busy;
  };
  for (const auto& one : places_) {
    if (!is_busy(one)) continue;
    if (one.said->remaining) remaining.push_back(*one.said->remaining);
    if (!one.said->holder) continue;
    const auto alike = count([&](const place& p) {
      return is_busy(p) && p.said->holder && same(*p.said->holder, *one.said->holder);
    });
    if (alike <= most) continue;
    most = alike;
    who.holder = *one.said->holder;
  }
  std::sort(remaining.begin(), remaining.end());
  const auto majority = majority_of(places_.size());
  const auto needed = holding() < majority ? majority - holding() : 1;
  if (remaining.size() >= needed) who.remaining = remaining[needed - 1];
  return who;
}

failure quorum_machine::why(std::span<const std::string> names, duration node_timeout) const {
  failure what;
  const auto majority = majority_of(places_.size());
  const auto holding = count([](const place& p) { return p.is == state::holds && !p.silent; });
  std::size_t perhaps = 0;
  std::size_t may_vote = 0;  // now, or by themselves before long
  std::size_t waiting = 0;   // of those
  // Where one node will not vote for us at all, one that was not waited for may say the same.
  const bool any_wrong = count([](const place& p) {
                           return p.is == state::out && p.said &&
                                  p.said->what == vote::kind::refused &&
                                  p.said->why.code != errc::store_loading;
                         }) > 0;
  std::vector<errc> codes;
  std::vector<node_answer> to_tell;
  for (std::size_t i = 0; i < places_.size(); ++i) {
    const auto& one = places_[i];
    std::string text;
    if (one.is == state::asked || one.silent) {
      text = one.silent ? "no answer in " + in_milliseconds(node_timeout)
                        : std::string{"not waited for"};
      if (one.silent) codes.push_back(errc::store_unreachable);
      may_vote += one.silent || any_wrong ? 0 : 1;
    } else if (one.is == state::holds) {
      text = "granted";
      ++may_vote;
    } else if (one.said->what == vote::kind::busy) {
      text = one.said->holder ? "held by another" : "kept for a waiter whose turn it is";
      ++may_vote;
    } else if (one.said->what == vote::kind::not_ours) {
      text = "lost our key";
      ++may_vote;
    } else {
      const auto code = one.said->why.code;
      const bool waits = one.said->what == vote::kind::refused && code == errc::store_loading;
      text = one.said->what == vote::kind::refused && !waits ? "refused: " : "";
      text += one.said->why.message;
      codes.push_back(code == errc::outcome_unknown ? errc::store_unreachable : code);
      waiting += waits ? 1 : 0;
      may_vote += waits ? 1 : 0;
    }
    perhaps += may_hold(i) ? 1 : 0;
    if (text != "granted") to_tell.push_back({names[i], text});
    what.nodes.push_back({names[i], std::move(text)});
  }
  // What most of the broken nodes say; what passes by itself only if nothing else is wrong.
  const auto often = [&](errc code) { return std::count(codes.begin(), codes.end(), code); };
  what.code = errc::store_unreachable;
  for (const auto code : codes) {
    if (code != errc::store_loading && often(code) > often(what.code)) what.code = code;
  }
  // Enough nodes answer, and only have to wait: the set serves again by itself.
  if (waiting > 0 && may_vote >= majority) what.code = errc::store_loading;
  if (what.code == errc::store_unreachable && perhaps >= majority) {
    what.code = errc::outcome_unknown;
  }
  what.message = std::to_string(holding) + " of " + std::to_string(places_.size()) + " granted";
  if (!to_tell.empty()) what.message += "; " + by_node(to_tell);
  return what;
}

}  // namespace holdfast::core
