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

quorum_step quorum_machine::acquire(std::size_t node) {
  auto& to = places_.at(node);
  // Until it is answered busy, all that is known of a call is that it comes after the first ask.
  if (!to.was_asked) to.line.queued(asks_.at, 0);
  to.was_asked = true;
  to.is = state::asked;
  to.silent = false;
  to.in_flight = true;
  to.asked_at = asks_.at;
  to.proposed = asks_.proposal;
  return {quorum_step::verb::acquire, node, asks_.proposal};
}

void quorum_machine::stand(std::size_t node, time_point since) {
  if (!began_) began_ = since;
  places_.at(node).was_asked = true;
  places_[node].line.queued(since, 0);
}

quorum_machine::steps quorum_machine::ask(quorum_ask how) {
  asks_ = std::move(how);
  if (!began_) began_ = asks_.at;
  outcome_ = quorum_outcome::undecided;
  for (auto& one : places_) {
    // Where it was called, and not heard of it in time, it is asked again.
    const bool expired = one.is == state::holds && asks_.at >= after(one.valid_from, one.valid_for);
    one.unsure = one.unsure || expired;
    // One ask at a time: nothing in an answer says which one it belongs to.
    if (expired || one.is == state::out) one.is = one.in_flight ? state::asked : state::unasked;
  }
  if (holding() >= majority_of(places_.size())) return evaluate(asks_.at);
  steps all;
  for (const auto node : asks_.first) {
    if (places_.at(node).is == state::unasked) all.push_back(acquire(node));
  }
  if (all.empty()) all = ask_the_rest();
  return all.empty() ? evaluate(asks_.at) : all;
}

quorum_machine::steps quorum_machine::ask_the_rest() {
  steps all;
  for (std::size_t i = 0; i < places_.size(); ++i) {
    if (places_[i].is == state::unasked) all.push_back(acquire(i));
  }
  return all;
}

bool quorum_machine::asked_all() const noexcept {
  return count([](const place& p) { return !p.was_asked; }) == 0;
}

std::size_t quorum_machine::calls_missing() const noexcept {
  const auto majority = majority_of(places_.size());
  return majority - std::min(majority - 1, holding());
}

void quorum_machine::take(place& from, vote v) {
  if (v.what == vote::kind::fresh) v.counter = from.proposed;
  highest_ = std::max(highest_, v.counter);
  // It was called or raised after it answered this, which was heard of first.
  const bool is_overtaken = from.is == state::holds && from.token > v.counter;
  const auto holds = [&](std::uint64_t token) {
    if (is_overtaken) return;
    from.is = state::holds;
    from.token = token;
    from.valid_from = from.asked_at;
    from.valid_for = rule_.ttl;
  };
  const bool was_unsure = std::exchange(from.unsure, false);
  const bool to_raise = v.what == vote::kind::raised || v.what == vote::kind::not_raised ||
                        v.what == vote::kind::not_ours;
  if (!to_raise) from.in_flight = false;
  switch (v.what) {
    case vote::kind::fresh:
      holds(v.counter);
      break;
    case vote::kind::stale:
      // It may have been called: that counts if nobody has been since, and if this is that key and
      // not one that was set again when the claim had run out, which no renewal would count.
      holds(v.counter == v.token ? v.token : 0);
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
      from.line.queued(from.asked_at, v.counter);
      if (!is_overtaken) from.is = state::out;
      break;
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

void quorum_machine::on_call(std::size_t node, std::uint64_t token) {
  auto& from = places_.at(node);
  const auto got = from.line.accept(fencing_token{token}, rule_.claim_ttl, 1);
  if (!got || over_ || outcome_ == quorum_outcome::granted) return;
  highest_ = std::max(highest_, token);
  from.silent = false;
  if (from.is == state::holds) {
    // It may have been found there before it was heard of.
    const bool found = from.said && from.said->what == vote::kind::stale;
    if (token <= from.token || (found && token <= from.said->counter)) return;
  }
  from.is = state::holds;
  from.token = token;
  from.valid_from = got->counted_from;
  from.valid_for = got->ttl;
}

quorum_machine::steps quorum_machine::on_vote(std::size_t node, vote v, time_point now) {
  auto& from = places_.at(node);
  const bool grants = v.what == vote::kind::fresh || v.what == vote::kind::stale;
  take(from, std::move(v));
  if (!decided()) return evaluate(now);
  if (grants && over_) return {{quorum_step::verb::release, node, 0}};
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
  const bool late = holding() > 0 && now >= after(asks_.at, rule_.ttl);
  return refuse(late ? quorum_outcome::late : kind_of_refusal());
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

std::size_t quorum_machine::holding() const noexcept {
  return count([](const place& p) { return p.is == state::holds; });
}

std::size_t quorum_machine::holding_with(std::uint64_t token) const noexcept {
  return count([&](const place& p) { return p.is == state::holds && p.token == token; });
}

bool quorum_machine::is_too_old(time_point now) const noexcept {
  return began_ && now >= after(*began_, rule_.stands_max);
}

quorum_machine::steps quorum_machine::evaluate(time_point now) {
  const auto majority = majority_of(places_.size());
  const auto ours = holding();
  const auto coming = count([](const place& p) { return p.is == state::asked && !p.silent; });
  const auto left = count([](const place& p) { return p.is == state::unasked; });
  const bool hurry = coming == 0 || count([](const place& p) {
                                      return p.is == state::out && p.said && is_failure(*p.said);
                                    }) > 0;
  if (now >= after(asks_.at, rule_.ttl)) {
    return refuse(ours > 0 ? quorum_outcome::late : kind_of_refusal());
  }
  if (is_too_old(now)) return refuse(kind_of_refusal());
  if (raise_to_ == 0) {
    for (const auto& one : places_) {
      const bool by_most = one.token != 0 && holding_with(one.token) >= majority;
      if (by_most) return conclude(one.token, now);
    }
    if (ours >= majority) return raise_higher();
    if (ours + coming + left < majority) return refuse(kind_of_refusal());
    return ours + coming < majority && hurry ? ask_the_rest() : steps{};
  }
  const auto raised = holding_with(raise_to_);
  if (raised >= majority) return conclude(raise_to_, now);
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

// A majority has this token for us. It is valid as long as the first of them to end.
quorum_machine::steps quorum_machine::conclude(std::uint64_t token, time_point now) {
  const auto end = [](const place& p) { return after(p.valid_from, p.valid_for); };
  const place* first = nullptr;
  for (const auto& one : places_) {
    if (one.is != state::holds || one.token != token) continue;
    if (first == nullptr || end(one) < end(*first)) first = &one;
  }
  granted_ = {fencing_token{token}, first->valid_for, first->valid_from};
  if (now >= end(*first)) return refuse(quorum_outcome::late);
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
  raise_to_ = std::max(highest_, asks_.proposal) + 1;
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
  if (!goes_on(how) || holding() > 0 || raise_to_ != 0) return give_back(how);
  outcome_ = how;
  return {};
}

bool quorum_machine::goes_on(quorum_outcome how) const noexcept {
  return rule_.claim_ttl > duration::zero() && how == quorum_outcome::busy;
}

quorum_machine::steps quorum_machine::give_back(quorum_outcome how) {
  outcome_ = how;
  over_ = true;
  if (how == quorum_outcome::late && granted_.token == fencing_token{}) {
    granted_ = {{}, rule_.ttl, asks_.at};
  }
  steps all;
  for (std::size_t i = 0; i < places_.size(); ++i) {
    // Where it is in line as well: nobody must be called by this id any more.
    const bool in_line = goes_on(how) && was_asked(i);
    if (may_hold(i) || in_line) all.push_back({quorum_step::verb::release, i, 0});
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
    const auto alike =
        count([&](const place& p) { return is_busy(p) && same(p.said->holder, one.said->holder); });
    if (alike <= most) continue;
    most = alike;
    who.holder = one.said->holder;
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
