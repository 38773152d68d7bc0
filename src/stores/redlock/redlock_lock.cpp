#include "stores/redlock/redlock_lock.hpp"

#include <unistd.h>

#include <algorithm>

#include "core/backoff.hpp"
#include "redlock_scripts.hpp"
#include "runtime/clock.hpp"
#include "runtime/random.hpp"
#include "stores/redis/script_values.hpp"
#include "stores/redlock/vote_round.hpp"

namespace holdfast::stores::redlock {

namespace {

using redis::milliseconds_text;
using std::chrono::milliseconds;

// Waiters of one lock on one node; beyond it they poll.
constexpr std::string_view waiters_max = "10000";
// A waiter asks again this often, whatever it hears: anywhere between, so that they spread.
constexpr core::duration ask_again_min = milliseconds{30};
constexpr core::duration ask_again_max = milliseconds{60};

const std::string layout_text = std::to_string(redis::layout_written);

// Longer than a turn of many waiters takes.
constexpr core::duration rivals_remembered = std::chrono::seconds{1};

std::uint64_t wall_us() {
  using std::chrono::microseconds;
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<microseconds>(runtime::wall_now().time_since_epoch()).count());
}

core::duration ask_again() {
  return core::between(ask_again_min, ask_again_max, runtime::random_bits());
}

bool is_ours_to_release(const redis::reply_value& r) {
  return r.type == redis::reply_kind::integer && r.integer == 1;
}

}  // namespace

// What an acquisition has to remember between its asks.
struct redlock_lock::waiting {
  std::shared_ptr<vote_round> votes;    // of the attempt that stands; null: the next is a new one
  std::shared_ptr<place_in_line> line;  // null: does not wait, or not now
  std::string ticket;                   // when it came, in every place in line it takes
  std::vector<core::owner_id> unanswered;  // attempts that a majority may hold
  bool asked = false;
};

redlock_lock::redlock_lock(std::shared_ptr<node_set> on, std::string key)
    : set_{std::move(on)},
      key_{std::move(key)},
      queue_key_{waiters_key(key_)},
      slot_{redis::hash_slot(key_)},
      counter_field_{"c:" + std::to_string(slot_)} {}

std::string redlock_lock::wall_ms_text() {
  const auto now = std::chrono::floor<milliseconds>(runtime::wall_now().time_since_epoch());
  return std::to_string(now.count());
}

redlock_lock::waiting& redlock_lock::memory_of(attempt& who) const {
  if (!who.memory) who.memory = std::make_shared<waiting>();
  return *static_cast<waiting*>(who.memory.get());
}

std::string redlock_lock::describe_us(std::string_view label) const {
  return redis::describe_holder(set_->host, ::getpid(), label);
}

redlock_lock::acquire_words redlock_lock::words_of(const attempt& who, const place_in_line* line,
                                                   std::uint64_t proposal) const {
  return {.ttl = milliseconds_text(who.ttl),
          .token = std::to_string(proposal),
          .since = wall_ms_text(),
          .holder = line != nullptr ? line->holder : describe_us(who.label),
          .ticket = line != nullptr ? line->ticket : std::string{},
          .call = line != nullptr ? line->call : std::string{},
          .asked_before = who.asks > 1};
}

request redlock_lock::acquire_request(std::size_t node, const core::owner_id& id,
                                      const acquire_words& words) const {
  const std::array<std::string_view, 3> keys{key_, record_key, queue_key_};
  const std::array<std::string_view, 13> args{set_->nodes()[node].config,
                                              counter_field_,
                                              id.text(),
                                              words.ttl,
                                              words.token,
                                              layout_text,
                                              words.since,
                                              words.holder,
                                              ahead_us_max,
                                              words.ticket,
                                              words.call,
                                              waiters_max,
                                              words.asked_before ? "1" : ""};
  return {scripts::acquire, keys, args};
}

request redlock_lock::raise_request(std::size_t node, const core::owner_id& id,
                                    std::uint64_t to) const {
  const auto token = std::to_string(to);
  const std::array<std::string_view, 2> keys{key_, record_key};
  const std::array<std::string_view, 4> args{set_->nodes()[node].config, counter_field_, id.text(),
                                             token};
  return {scripts::raise, keys, args};
}

request redlock_lock::release_request(std::size_t node, const core::owner_id& id,
                                      const release_words& words) const {
  const std::array<std::string_view, 3> keys{key_, record_key, queue_key_};
  const std::array<std::string_view, 8> args{set_->nodes()[node].config,
                                             counter_field_,
                                             id.text(),
                                             layout_text,
                                             words.since,
                                             words.leaves_as,
                                             words.stays_as,
                                             words.ticket};
  return {scripts::release, keys, args};
}

void redlock_lock::begin(attempt& who, waiting& mine, const core::owner_id& id) {
  who.id = id;
  mine.votes = std::make_shared<vote_round>(
      set_, shared_from_this(), id,
      core::quorum_rule{set_->nodes().size(), who.ttl,
                        mine.line ? who.claim_ttl : core::duration::zero(),
                        set_->config.max_ttl / 2},
      mine.line);
  if (mine.line) set_->waiting().expect(id);
  const std::lock_guard guard{m_};
  held_[id] = {set_->everybody()};
}

result<core::answer> redlock_lock::ask(attempt& who, core::time_point until) {
  if (who.ttl > set_->config.max_ttl) {
    return fail(errc::invalid_argument,
                "the TTL is above the set's max_ttl of " + milliseconds_text(set_->config.max_ttl) +
                    " ms, which is how long a node that lost data does not vote");
  }
  auto& mine = memory_of(who);
  if (who.may_wait && !mine.line) mine.line = join_line(who, mine);
  // An id is for one attempt only: what an earlier one left on its way must not touch this one.
  const bool first_time = !std::exchange(mine.asked, true);
  if (!mine.votes) begin(who, mine, first_time ? who.id : runtime::fresh_owner());
  if (mine.votes->retire(runtime::now())) begin_again(who, mine);
  const auto votes = mine.votes;
  ++who.asks;

  const auto now = runtime::now();
  const bool rivals = now.time_since_epoch().count() < rivals_until_;
  auto first = set_->ask_first(slot_, rivals ? core::rivals::seen : core::rivals::none_seen, now);
  const auto proposal = core::propose(last_seen_, wall_us());
  votes->ask({proposal, now, std::move(first.nodes)}, first.patience,
             words_of(who, mine.line.get(), proposal),
             mine.line ? set_->waiting().take(who.id) : std::vector<vote_inbox::call>{});
  votes->wait(until);
  set_->watch_replies();
  auto verdict = votes->look();

  auto seen = last_seen_.load();
  const auto highest = std::max(verdict.highest_seen, verdict.granted.token.value());
  while (seen < highest && !last_seen_.compare_exchange_weak(seen, highest)) {
  }
  if (verdict.outcome == core::quorum_outcome::busy) {
    rivals_until_ = core::after(runtime::now(), rivals_remembered).time_since_epoch().count();
    if (mine.line) {
      set_->waiting().open();
      if (verdict.over) begin_again(who, mine);
      verdict.met.queued = true;
      verdict.met.ask_within = std::min(ask_again(), who.claim_ttl / core::asks_per_claim);
      return core::answer{std::move(verdict.met)};
    }
  }
  mine.votes.reset();
  if (verdict.outcome == core::quorum_outcome::granted) {
    if (mine.line) stop_waiting(who, mine);
    const auto asked = votes->asked();
    {
      const std::lock_guard guard{m_};
      // Not made anew: a vote that came late may have noted that it is in line (leaves_line).
      auto& kept = held_[who.id];
      kept.at = asked;
      kept.token = verdict.granted.token;
      if (mine.line && mine.line->joined) kept.entry = mine.line->entry(who.id);
    }
    if (asked != set_->everybody()) fill_in(who, verdict.granted, asked);
    return core::answer{verdict.granted};
  }
  votes->give_back({});
  {
    const std::lock_guard guard{m_};
    held_.erase(who.id);
  }
  switch (verdict.outcome) {
    case core::quorum_outcome::busy:
      return core::answer{std::move(verdict.met)};
    case core::quorum_outcome::late:
      // That it is late is for the caller to see.
      return core::answer{verdict.granted};
    default:
      break;
  }
  if (verdict.why.code == errc::outcome_unknown) mine.unanswered.push_back(who.id);
  // It may not be asked again, nor withdrawn: some nodes said busy, and have it in line.
  if (mine.line) leave_line(who, mine);
  if (set_->counters_lost()) verdict.why.message.append("; ").append(counters_lost_advice);
  return fail(std::move(verdict.why));
}

void redlock_lock::begin_again(attempt& who, waiting& mine) {
  const auto before = std::exchange(mine.votes, nullptr);
  const auto was = who.id;
  begin(who, mine, runtime::fresh_owner());
  const auto since = runtime::now();
  mine.line->joined = true;
  before->give_back(mine.line->entry(who.id));
  mine.votes->stand(before->asked(), since);
  set_->waiting().forget(was);
  const std::lock_guard guard{m_};
  held_.erase(was);
}

std::shared_ptr<place_in_line> redlock_lock::join_line(const attempt& who, waiting& mine) const {
  auto place = std::make_shared<place_in_line>();
  if (mine.ticket.empty()) mine.ticket = std::to_string(wall_us());
  place->ticket = mine.ticket;
  place->call = call_to(set_->waiting().inbox(), who.claim_ttl);
  place->holder = describe_us(who.label);
  return place;
}

void redlock_lock::stop_waiting(const attempt& who, waiting& mine) {
  mine.line->waits = false;
  set_->waiting().forget(who.id);
}

void redlock_lock::leave_line(const attempt& who, waiting& mine) {
  stop_waiting(who, mine);
  const auto line = std::exchange(mine.line, nullptr);
  if (!line->joined) return;
  give_back(who.id, {.leaves_as = line->entry(who.id)}, set_->everybody(),
            core::after(runtime::now(), who.ttl));
}

void redlock_lock::give_back(const core::owner_id& id, const release_words& words, node_mask at,
                             core::time_point give_up) {
  for (std::size_t i = 0; i < set_->nodes().size(); ++i) {
    if (!has(at, i)) continue;
    set_->nodes()[i].calls->send_for_sure(release_request(i, id, words), give_up, nullptr);
  }
  set_->watch_replies();
}

void redlock_lock::wait(attempt& who, core::time_point until, const std::stop_token& stop) {
  set_->waiting().wait(who.id, memory_of(who).votes->calls_missing(), until, stop);
}

// Sure if a majority has confirmed: what is left elsewhere is no majority and ends with its TTL.
result<removal> redlock_lock::withdraw(attempt& who, core::time_point until) {
  auto& mine = memory_of(who);
  mine.votes.reset();
  release_words words;
  if (mine.line) {
    stop_waiting(who, mine);
    words.leaves_as = mine.line->entry(who.id);
  }
  {
    const std::lock_guard guard{m_};
    held_.erase(who.id);
  }
  const auto give_up = core::after(runtime::now(), who.ttl);
  for (const auto& id : mine.unanswered)
    give_back(id, {}, set_->everybody(), give_up);
  const auto asked = set_->ask_all();
  for (std::size_t i = 0; i < set_->nodes().size(); ++i)
    asked->ask(i, release_request(i, who.id, words), give_up);
  const auto answers = asked->gather(until);
  set_->watch_replies();
  const auto confirmed =
      std::count_if(answers.begin(), answers.end(), [](const auto& one) { return one && *one; });
  return static_cast<std::size_t>(confirmed) >= set_->majority() ? removal::gone : removal::unsure;
}

result<removal> redlock_lock::release(const core::owner_id& id, core::time_point until) {
  const auto [at, token, entry] = take_out(id);
  // A node that is away now must not have it when it comes back.
  const auto give_up = core::after(runtime::now(), set_->config.max_ttl);
  const auto asked = set_->ask_all();
  const release_words words{.leaves_as = entry};
  for (std::size_t i = 0; i < set_->nodes().size(); ++i) {
    if (has(at, i)) asked->ask(i, release_request(i, id, words), give_up);
  }
  const auto answers = asked->gather(until, set_->majority(), is_ours_to_release);
  set_->watch_replies();
  std::size_t released = 0;
  std::size_t gone = 0;
  std::size_t taken = 0;
  failure why{errc::outcome_unknown, "too few nodes answered the release", {}};
  for (std::size_t i = 0; i < answers.size(); ++i) {
    if (!has(at, i)) {
      ++gone;  // it never was there
      continue;
    }
    if (!answers[i] || !*answers[i]) {
      why.nodes.push_back({set_->names()[i], answers[i] ? answers[i]->error().message
                                                        : std::string{"no answer in time"}});
      continue;
    }
    const auto said = (**answers[i])->integer;
    ++(said > 0 ? released : said == 0 ? gone : taken);
  }
  if (released >= set_->majority()) return removal::released;
  if (set_->nodes().size() - gone - taken < set_->majority()) {
    return taken > gone ? removal::taken : removal::gone;
  }
  if (released + gone + taken >= set_->majority()) return removal::unsure;
  return fail(std::move(why));
}

void redlock_lock::release_later(const core::owner_id& id, core::time_point give_up) noexcept {
  const auto [at, token, entry] = take_out(id);
  give_back(id, {.leaves_as = entry}, at, give_up);
}

redlock_lock::ours redlock_lock::take_out(const core::owner_id& id) {
  const std::lock_guard guard{m_};
  const auto known = held_.find(id);
  if (known == held_.end()) return {set_->everybody()};
  auto what = std::move(known->second);
  held_.erase(known);
  return what;
}

bool redlock_lock::holds(const core::owner_id& id) {
  const std::lock_guard guard{m_};
  return held_.contains(id) || handed_on_.contains(id);
}

bool redlock_lock::leaves_line(const core::owner_id& id, const std::string& entry) {
  const std::lock_guard guard{m_};
  const auto known = held_.find(id);
  if (known == held_.end()) return false;
  known->second.entry = entry;
  return true;
}

void redlock_lock::forget(const core::owner_id& id) noexcept {
  const auto now = runtime::now();
  const std::lock_guard guard{m_};
  held_.erase(id);
  std::erase_if(handed_on_, [&](const auto& one) { return one.second < now; });
  handed_on_[id] = core::after(now, set_->config.max_ttl);
}

}  // namespace holdfast::stores::redlock
