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

bool is_ours_to_release(const redisReply& r) {
  return r.type == REDIS_REPLY_INTEGER && r.integer == 1;
}

}  // namespace

// What an attempt that was not granted at once has to remember.
struct redlock_lock::waiting {
  std::shared_ptr<place_in_line> line;     // null: does not wait, or not now
  std::string ticket;                      // when it came, in every place in line it takes
  std::vector<core::owner_id> unanswered;  // attempts that a majority may hold
  bool asked = false;
};

redlock_lock::redlock_lock(std::shared_ptr<node_set> on, std::string key)
    : set_{std::move(on)},
      key_{std::move(key)},
      queue_key_{waiters_key(key_)},
      next_key_{next_key(key_)},
      slot_{redis::hash_slot(key_)},
      counter_field_{"c:" + std::to_string(slot_)} {}

redlock_lock::waiting& redlock_lock::memory_of(attempt& who) const {
  if (!who.memory) who.memory = std::make_shared<waiting>();
  return *static_cast<waiting*>(who.memory.get());
}

redlock_lock::acquire_words redlock_lock::words_of(const attempt& who,
                                                   std::uint64_t proposal) const {
  return {milliseconds_text(who.ttl), std::to_string(proposal), describe_us(who.label),
          who.asks > 1};
}

std::string redlock_lock::describe_us(std::string_view label) const {
  const auto now = std::chrono::floor<milliseconds>(runtime::wall_now().time_since_epoch());
  return "since=" + std::to_string(now.count()) + ";" +
         redis::describe_holder(set_->host, ::getpid(), label);
}

request redlock_lock::acquire_request(std::size_t node, const core::owner_id& id,
                                      const acquire_words& words, std::string_view ticket,
                                      std::string_view waiter) const {
  const std::array<std::string_view, 4> keys{key_, record_key, queue_key_, next_key_};
  const std::array<std::string_view, 12> args{set_->nodes()[node].config,
                                              counter_field_,
                                              id.text(),
                                              words.ttl,
                                              words.token,
                                              words.holder,
                                              layout_text,
                                              ahead_us_max,
                                              ticket,
                                              waiter,
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

request redlock_lock::release_request(const core::owner_id& id, std::string_view queue_verb,
                                      std::string_view waiter, std::string_view ticket) const {
  const auto kept = milliseconds_text(set_->config.node_timeout);
  const std::array<std::string_view, 3> keys{key_, queue_key_, next_key_};
  const std::array<std::string_view, 5> args{id.text(), kept, queue_verb, waiter, ticket};
  return {scripts::release, keys, args};
}

result<core::answer> redlock_lock::ask(attempt& who, core::time_point until) {
  if (who.ttl > set_->config.max_ttl) {
    return fail(errc::invalid_argument,
                "the TTL is above the set's max_ttl of " + milliseconds_text(set_->config.max_ttl) +
                    " ms, which is how long a node that lost data does not vote");
  }
  auto& mine = memory_of(who);
  // An id is for one attempt only: what an earlier one left on its way must not touch this one.
  if (std::exchange(mine.asked, true)) who.id = runtime::fresh_owner();
  if (who.may_wait && !mine.line) mine.line = join_line(mine);
  if (mine.line) set_->waiting().expect(mine.line->id);
  ++who.asks;

  {
    const std::lock_guard guard{m_};
    held_[who.id] = {set_->everybody()};
  }
  const auto counted_from = runtime::now();
  const bool rivals = counted_from.time_since_epoch().count() < rivals_until_;
  auto first =
      set_->ask_first(slot_, rivals ? core::rivals::seen : core::rivals::none_seen, counted_from);
  const auto votes = std::make_shared<vote_round>(
      set_, shared_from_this(), who, mine.line,
      core::quorum_rule{set_->nodes().size(), core::propose(last_seen_, wall_us()),
                        core::after(counted_from, who.ttl), std::move(first.nodes)},
      first.patience);
  votes->start();
  votes->wait(until);
  set_->watch_replies();
  auto verdict = votes->look();

  auto seen = last_seen_.load();
  const auto highest = std::max(verdict.highest_seen, verdict.token);
  while (seen < highest && !last_seen_.compare_exchange_weak(seen, highest)) {
  }
  if (verdict.outcome != core::quorum_outcome::granted) {
    const std::lock_guard guard{m_};
    held_.erase(who.id);
  }
  switch (verdict.outcome) {
    case core::quorum_outcome::granted: {
      if (mine.line) {
        mine.line->waits = false;
        set_->waiting().forget(mine.line->id);
      }
      const core::grant got{fencing_token{verdict.token}, who.ttl, counted_from, 1};
      {
        const std::lock_guard guard{m_};
        // Not made anew: a vote that came late may have noted that it is in line (leaves_line).
        auto& kept = held_[who.id];
        kept.at = verdict.asked | (mine.line ? mine.line->at.load() : 0);
        if (mine.line && mine.line->joined) kept.waiter = mine.line->waiter;
      }
      if (verdict.asked != set_->everybody()) fill_in(who, got, verdict.asked);
      return core::answer{got};
    }
    case core::quorum_outcome::late:
      // Given back already; that it is late is for the caller to see.
      return core::answer{core::grant{fencing_token{verdict.token}, who.ttl, counted_from, 1}};
    case core::quorum_outcome::busy:
      rivals_until_ = core::after(runtime::now(), rivals_remembered).time_since_epoch().count();
      if (mine.line) {
        set_->waiting().open();
        verdict.met.queued = true;
        verdict.met.ask_within = ask_again();
      }
      return core::answer{std::move(verdict.met)};
    case core::quorum_outcome::undecided:
    case core::quorum_outcome::failed:
      break;
  }
  if (verdict.why.code == errc::outcome_unknown) mine.unanswered.push_back(who.id);
  // It may not be asked again, nor withdrawn: some nodes said busy, and have it in line.
  if (mine.line) leave_line(who, mine);
  if (set_->counters_lost()) verdict.why.message.append("; ").append(counters_lost_advice);
  return fail(std::move(verdict.why));
}

std::shared_ptr<place_in_line> redlock_lock::join_line(waiting& mine) const {
  auto place = std::make_shared<place_in_line>();
  place->id = runtime::fresh_owner();
  if (mine.ticket.empty()) mine.ticket = std::to_string(wall_us());
  place->ticket = mine.ticket;
  place->waiter = std::string{place->id.text()} + std::string{set_->waiting().inbox()};
  return place;
}

void redlock_lock::leave_line(const attempt& who, waiting& mine) {
  const auto line = std::exchange(mine.line, nullptr);
  line->waits = false;
  set_->waiting().forget(line->id);
  if (!line->joined) return;
  give_back(release_request(who.id, "leave", line->waiter), set_->everybody(),
            core::after(runtime::now(), who.ttl));
}

void redlock_lock::give_back(const request& what, node_mask at, core::time_point give_up) {
  for (std::size_t i = 0; i < set_->nodes().size(); ++i) {
    if (has(at, i)) set_->nodes()[i].calls->send_for_sure(what, give_up, nullptr);
  }
  set_->watch_replies();
}

void redlock_lock::wait(attempt& who, core::time_point until, const std::stop_token& stop) {
  set_->waiting().wait(memory_of(who).line->id, until, stop);
}

// Sure if a majority has confirmed: what is left elsewhere is no majority and ends with its TTL.
result<removal> redlock_lock::withdraw(attempt& who, core::time_point until) {
  auto& mine = memory_of(who);
  std::string_view waiter;
  if (mine.line) {
    mine.line->waits = false;
    set_->waiting().forget(mine.line->id);
    waiter = mine.line->waiter;
  }
  {
    const std::lock_guard guard{m_};
    held_.erase(who.id);
  }
  const auto give_up = core::after(runtime::now(), who.ttl);
  for (const auto& id : mine.unanswered)
    give_back(release_request(id), set_->everybody(), give_up);
  const auto asked = set_->ask_all();
  for (std::size_t i = 0; i < set_->nodes().size(); ++i)
    asked->ask(i, release_request(who.id, waiter.empty() ? "" : "leave", waiter), give_up);
  const auto answers = asked->gather(until);
  set_->watch_replies();
  const auto confirmed =
      std::count_if(answers.begin(), answers.end(), [](const auto& one) { return one && *one; });
  return static_cast<std::size_t>(confirmed) >= set_->majority() ? removal::gone : removal::unsure;
}

result<removal> redlock_lock::release(const core::owner_id& id, core::time_point until) {
  const auto [at, waiter] = take_out(id);
  // A node that is away now must not have it when it comes back.
  const auto give_up = core::after(runtime::now(), set_->config.max_ttl);
  const auto asked = set_->ask_all();
  const auto what = release_request(id, waiter.empty() ? "" : "leave", waiter);
  for (std::size_t i = 0; i < set_->nodes().size(); ++i) {
    if (has(at, i)) asked->ask(i, what, give_up);
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
  const auto [at, waiter] = take_out(id);
  give_back(release_request(id, waiter.empty() ? "" : "leave", waiter), at, give_up);
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

bool redlock_lock::leaves_line(const core::owner_id& id, const std::string& waiter) {
  const std::lock_guard guard{m_};
  const auto known = held_.find(id);
  if (known == held_.end()) return false;
  known->second.waiter = waiter;
  return true;
}

void redlock_lock::forget(const core::owner_id& id) noexcept {
  const auto now = runtime::now();
  const std::lock_guard guard{m_};
  held_.erase(id);
  std::erase_if(handed_on_, [&](const auto& one) { return one.second < now; });
  handed_on_[id] = core::after(now, set_->config.max_ttl);
}

std::vector<node_view> redlock_lock::look(core::time_point until) {
  const auto answers = set_->inspect({&key_, 1}, until);
  std::vector<node_view> views;
  for (std::size_t i = 0; i < answers.size(); ++i)
    views.push_back(read_views(answers[i], 1, set_->names()[i], set_->set()).front());
  return views;
}

result<lock_status> redlock_lock::inspect(core::time_point until) {
  return judge_status(key_.substr(set_->config.prefix.size()), look(until));
}

result<void> redlock_lock::break_with(fencing_token token, core::time_point until) {
  // Who it is first: nodes that were not raised know it by another token.
  const auto views = look(until);
  auto status = judge_status({}, views);
  if (!status) return fail(std::move(status.error()));
  if (!status->holder) return fail(errc::not_held, "nobody holds the lock; nothing was changed");
  if (status->holder->foreign) {
    return fail(errc::not_held,
                "the lock is held by another kind of client, which has no token; nothing was "
                "changed: release it there, or delete the keys by hand");
  }
  if (status->holder->token != token) {
    return fail(errc::not_held, "the lock is held with token " + to_string(status->holder->token) +
                                    ", not " + to_string(token) + "; nothing was changed");
  }
  std::optional<core::owner_id> owner;
  for (const auto& one : views) {
    const auto holder = redis::parse_holder(one.value);
    if (holder && holder->token == token) owner = owner_in(one.value);
  }
  if (!owner) return fail(errc::not_held, "the lock has changed hands; nothing was changed");
  auto said = release(*owner, until);
  if (!said) return fail(std::move(said.error()));
  return {};
}

}  // namespace holdfast::stores::redlock
