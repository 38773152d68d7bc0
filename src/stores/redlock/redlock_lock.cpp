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
// How long a node keeps a lock that was given back for the waiter that came first. Longer than a
// message and an ask take on a network; a waiter that is paused or cut off costs no more than this.
constexpr std::string_view turn_ms = "50";
// A waiter asks again this often, whatever it hears: anywhere between, so that they spread.
constexpr core::duration ask_again_min = milliseconds{30};
constexpr core::duration ask_again_max = milliseconds{60};

const std::string layout_text = std::to_string(redis::layout_written);

std::uint64_t wall_us() {
  using std::chrono::microseconds;
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<microseconds>(runtime::wall_now().time_since_epoch()).count());
}

bool is_ours_to_release(const redis::reply_value& r) {
  return r.type == redis::reply_kind::integer && r.integer == 1;
}

}  // namespace

// What an acquisition has to remember between its asks. An acquisition that ends without having
// been in a queue is not withdrawn: what it expected to hear ends with this.
struct redlock_lock::memory {
  explicit memory(std::shared_ptr<node_set> on) : set{std::move(on)} {}
  memory(const memory&) = delete;
  memory& operator=(const memory&) = delete;
  ~memory() { static_cast<void>(stop_waiting()); }

  // It waits no more. Gives its entry if it may be in a queue, to be taken out.
  [[nodiscard]] std::string stop_waiting() {
    const auto gone = std::exchange(waiter, nullptr);
    if (!gone) return {};
    gone->done = true;
    set->turns().forget(gone->id);
    return gone->entered ? gone->entry() : std::string{};
  }

  const std::shared_ptr<node_set> set;
  std::shared_ptr<queued_waiter> waiter;   // null: does not wait
  std::string ticket;                      // when it began to wait, however often it has to join
  std::vector<core::owner_id> unanswered;  // attempts that a majority may hold
};

redlock_lock::redlock_lock(std::shared_ptr<node_set> on, std::string key)
    : set_{std::move(on)},
      key_{std::move(key)},
      queue_key_{waiters_key(key_)},
      slot_{redis::hash_slot(key_)},
      counter_field_{"c:" + std::to_string(slot_)} {}

redlock_lock::memory& redlock_lock::memory_of(blocking::attempt& who) const {
  if (!who.memory) who.memory = std::make_shared<memory>(set_);
  return *static_cast<memory*>(who.memory.get());
}

std::string redlock_lock::describe_us(std::string_view label) const {
  return redis::describe_holder(set_->host, ::getpid(), label);
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
                                              words.waiter,
                                              words.ticket,
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

request redlock_lock::release_request(const core::owner_id& id, std::string_view leaves_as,
                                      turn whose) const {
  const std::array<std::string_view, 2> keys{key_, queue_key_};
  const std::array<std::string_view, 3> args{id.text(), leaves_as,
                                             whose == turn::next ? turn_ms : "0"};
  return {scripts::release, keys, args};
}

request redlock_lock::leave_request(std::string_view entry) const {
  const std::array<std::string_view, 2> keys{key_, queue_key_};
  const std::array<std::string_view, 3> args{"", entry, "0"};
  return {scripts::release, keys, args};
}

void redlock_lock::begin_to_wait(const blocking::attempt& who, memory& mine) const {
  if (mine.ticket.empty()) mine.ticket = std::to_string(wall_us());
  mine.waiter = std::make_shared<queued_waiter>(runtime::fresh_owner(), set_->turns().inbox(),
                                                mine.ticket, describe_us(who.label));
  set_->turns().expect(mine.waiter->id);
}

void redlock_lock::saw(std::uint64_t counter) noexcept {
  auto seen = last_seen_.load();
  while (seen < counter && !last_seen_.compare_exchange_weak(seen, counter)) {
  }
}

// Every ask is an attempt of its own, by a fresh id: what an earlier one left on its way must not
// touch this one. The waiter behind them stays the same.
result<core::answer> redlock_lock::ask(blocking::attempt& who, core::time_point until) {
  if (who.ttl > set_->config.max_ttl) {
    return fail(errc::invalid_argument,
                "the TTL is above the set's max_ttl of " + milliseconds_text(set_->config.max_ttl) +
                    " ms, which is how long a node that lost data does not vote");
  }
  auto& mine = memory_of(who);
  if (who.may_wait && !mine.waiter) begin_to_wait(who, mine);
  if (who.asks++ > 0) who.id = runtime::fresh_owner();
  {
    const std::lock_guard guard{m_};
    held_[who.id] = {};
  }
  const auto proposal = core::propose(last_seen_, wall_us());
  acquire_words words{.ttl = milliseconds_text(who.ttl),
                      .token = std::to_string(proposal),
                      .since = std::to_string(runtime::wall_ms().count()),
                      .holder = mine.waiter ? mine.waiter->holder : describe_us(who.label)};
  // A client that a majority does not answer would be told its turn, and could not use it.
  const bool queues = mine.waiter && (mine.waiter->entered || set_->majority_answers());
  if (queues) {
    words.waiter = mine.waiter->address;
    words.ticket = mine.waiter->ticket;
    words.asked_before = mine.waiter->entered.exchange(true);
  }
  if (mine.waiter) set_->turns().asks(mine.waiter->id);
  const auto votes = std::make_shared<vote_round>(set_, shared_from_this(), who.id, who.ttl,
                                                  queues ? mine.waiter : nullptr);
  votes->ask(proposal, std::move(words));
  votes->wait(until);
  set_->watch_replies();
  auto verdict = votes->look();
  set_->majority_answers(verdict.majority_works);
  saw(std::max(verdict.highest_seen, verdict.granted.token.value()));
  if (verdict.outcome == core::quorum_outcome::granted) {
    {
      const std::lock_guard guard{m_};
      held_[who.id] = verdict.granted.token;
    }
    if (!mine.stop_waiting().empty()) votes->leave_queues();
    return core::answer{verdict.granted};
  }
  votes->give_back();
  take_out(who.id);
  switch (verdict.outcome) {
    case core::quorum_outcome::busy:
      if (mine.waiter) {
        set_->turns().open();
        verdict.met.queued = mine.waiter->entered;
        verdict.met.ask_within =
            core::between(ask_again_min, ask_again_max, runtime::random_bits());
      }
      return core::answer{std::move(verdict.met)};
    case core::quorum_outcome::late:
      // That it is late is for the caller to see.
      return core::answer{verdict.granted};
    default:
      break;
  }
  if (verdict.why.code == errc::outcome_unknown) mine.unanswered.push_back(who.id);
  // It may not be asked again, nor withdrawn: some nodes may have it in their queue.
  if (const auto entry = mine.stop_waiting(); !entry.empty()) {
    give_back(who.id, entry, turn::nobodys, core::after(runtime::now(), who.ttl));
  }
  if (verdict.why.code == errc::store_loading) {
    verdict.why.message.append(init_advice);
    return core::answer{core::not_yet{std::move(verdict.why)}};
  }
  return fail(std::move(verdict.why));
}

void redlock_lock::wait(blocking::attempt& who, core::time_point until,
                        const std::stop_token& stop) {
  const auto& waiter = memory_of(who).waiter;
  set_->turns().wait(waiter->id, set_->majority(), until, stop);
}

void redlock_lock::give_back(const core::owner_id& id, std::string_view leaves_as, turn whose,
                             core::time_point give_up) {
  for (const auto& node : set_->nodes())
    node.calls->send_for_sure(release_request(id, leaves_as, whose), give_up, nullptr);
  set_->watch_replies();
}

// Sure if a majority has confirmed: what is left elsewhere is no majority and ends with its TTL.
result<removal> redlock_lock::withdraw(blocking::attempt& who, core::time_point until) {
  auto& mine = memory_of(who);
  const auto entry = mine.stop_waiting();
  take_out(who.id);
  const auto give_up = core::after(runtime::now(), who.ttl);
  for (const auto& id : mine.unanswered)
    give_back(id, {}, turn::nobodys, give_up);
  const auto asked = set_->ask_all();
  for (std::size_t i = 0; i < set_->nodes().size(); ++i)
    asked->ask(i, release_request(who.id, entry, turn::nobodys), give_up);
  const auto answers = asked->gather(until);
  set_->watch_replies();
  const auto confirmed =
      std::count_if(answers.begin(), answers.end(), [](const auto& one) { return one && *one; });
  return static_cast<std::size_t>(confirmed) >= set_->majority() ? removal::gone : removal::unsure;
}

result<removal> redlock_lock::release(const core::owner_id& id, core::time_point until) {
  take_out(id);
  // A node that is away now must not have it when it comes back.
  const auto give_up = core::after(runtime::now(), set_->config.max_ttl);
  const auto asked = set_->ask_all();
  for (std::size_t i = 0; i < set_->nodes().size(); ++i)
    asked->ask(i, release_request(id, {}, turn::next), give_up);
  const auto answers = asked->gather(until, set_->majority(), is_ours_to_release);
  set_->watch_replies();
  std::size_t released = 0;
  std::size_t gone = 0;
  std::size_t taken = 0;
  failure why{errc::outcome_unknown, "too few nodes answered the release", {}};
  for (std::size_t i = 0; i < answers.size(); ++i) {
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
  take_out(id);
  give_back(id, {}, turn::next, give_up);
}

void redlock_lock::take_out(const core::owner_id& id) {
  const std::lock_guard guard{m_};
  held_.erase(id);
}

bool redlock_lock::holds(const core::owner_id& id) {
  const std::lock_guard guard{m_};
  return held_.contains(id) || handed_on_.contains(id);
}

void redlock_lock::forget(const core::owner_id& id) noexcept {
  const auto now = runtime::now();
  const std::lock_guard guard{m_};
  held_.erase(id);
  std::erase_if(handed_on_, [&](const auto& one) { return one.second < now; });
  handed_on_[id] = core::after(now, set_->config.max_ttl);
}

}  // namespace holdfast::stores::redlock
