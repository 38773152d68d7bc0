#include "stores/redlock/redlock_lock.hpp"

#include <algorithm>

#include "redlock_scripts.hpp"
#include "runtime/clock.hpp"
#include "stores/redis/script_values.hpp"
#include "stores/redlock/redlock_attempt.hpp"

namespace holdfast::stores::redlock {

namespace {

using redis::milliseconds_text;
using std::chrono::milliseconds;

// Waiters of one lock on one node; beyond it they poll.
constexpr std::string_view waiters_max = "10000";
// How long a node keeps a lock that was given back for the waiter that came first. Longer than a
// message and an ask take on a network; a waiter that is paused or cut off costs no more than this.
constexpr std::string_view turn_ms = "50";
const std::string layout_text = std::to_string(redis::layout_written);

// What scripts/release.lua answers; anything else: another has it.
constexpr long long released_here = 1;
constexpr long long held_by_nobody = 0;

bool is_ours_to_release(const redis::reply_value& r) {
  return r.type == redis::reply_kind::integer && r.integer == released_here;
}

result<removal> read_releases(const gather::answers& answers, const node_set& set) {
  std::size_t released = 0;
  std::size_t gone = 0;
  std::size_t taken = 0;
  failure why{errc::outcome_unknown, "too few nodes answered the release", {}};
  for (std::size_t i = 0; i < answers.size(); ++i) {
    if (!answers[i] || !*answers[i]) {
      why.nodes.push_back({set.names()[i], answers[i] ? answers[i]->error().message
                                                      : std::string{"no answer in time"}});
      continue;
    }
    const auto said = (**answers[i])->integer;
    ++(said == released_here ? released : said == held_by_nobody ? gone : taken);
  }
  if (released >= set.majority()) return removal::released;
  if (set.size() - gone - taken < set.majority()) {
    return taken > gone ? removal::taken : removal::gone;
  }
  if (released + gone + taken >= set.majority()) return removal::unsure;
  return fail(std::move(why));
}

}  // namespace

redlock_lock::redlock_lock(std::shared_ptr<node_set> on, std::string key)
    : set_{std::move(on)},
      key_{std::move(key)},
      queue_key_{waiters_key(key_)},
      slot_{redis::hash_slot(key_)},
      counter_field_{"c:" + std::to_string(slot_)} {}

std::unique_ptr<attempt> redlock_lock::begin(attempt_spec what) {
  return std::make_unique<redlock_attempt>(set_, shared_from_this(), std::move(what));
}

request redlock_lock::acquire_request(std::size_t node, const core::owner_id& id,
                                      const acquire_args& with) const {
  return {scripts::acquire,
          {key_, record_key, queue_key_},
          {set_->config_of(node), counter_field_, id.text(), with.ttl, with.token, layout_text,
           with.since, with.holder, ahead_us_max, with.waiter, with.ticket, waiters_max,
           with.asked_before ? "1" : ""}};
}

request redlock_lock::raise_request(std::size_t node, const core::owner_id& id,
                                    std::uint64_t to) const {
  const auto token = std::to_string(to);
  return {scripts::raise,
          {key_, record_key},
          {set_->config_of(node), counter_field_, id.text(), token}};
}

request redlock_lock::release_request(const core::owner_id& id, std::string_view leaves_as,
                                      turn whose) const {
  return {scripts::release,
          {key_, queue_key_},
          {id.text(), leaves_as, whose == turn::next ? turn_ms : "0"}};
}

request redlock_lock::leave_request(std::string_view entry) const {
  return {scripts::release, {key_, queue_key_}, {"", entry, "0"}};
}

std::uint64_t redlock_lock::propose(std::uint64_t wall_us) const noexcept {
  return core::propose(last_seen_, wall_us);
}

void redlock_lock::saw(std::uint64_t counter) noexcept {
  auto seen = last_seen_.load();
  while (seen < counter && !last_seen_.compare_exchange_weak(seen, counter)) {
  }
}

void redlock_lock::give_back(const core::owner_id& id, std::string_view leaves_as, turn whose,
                             core::time_point give_up) const {
  for (const auto& node : set_->calls())
    node->send_for_sure(release_request(id, leaves_as, whose), give_up, nullptr);
  set_->watch_replies();
}

std::shared_ptr<gather> redlock_lock::ask_to_release(const core::owner_id& id,
                                                     std::string_view leaves_as, turn whose,
                                                     core::time_point give_up) const {
  auto asked = set_->ask_all();
  for (std::size_t i = 0; i < set_->size(); ++i)
    asked->ask(i, release_request(id, leaves_as, whose), give_up);
  return asked;
}

void redlock_lock::release(const core::owner_id& id, core::time_point until, caller& by,
                           on_removal done) {
  take_out(id);
  // A node that is away now must not have it when it comes back.
  const auto give_up = core::after(runtime::now(), set_->config.max_ttl);
  ask_to_release(id, {}, turn::next, give_up)
      ->collect(
          until, by,
          [set = set_, done = std::move(done)](const auto& answers) {
            set->watch_replies();
            done(read_releases(answers, *set));
          },
          set_->majority(), is_ours_to_release);
}

void redlock_lock::release_later(const core::owner_id& id, core::time_point give_up) noexcept {
  take_out(id);
  give_back(id, {}, turn::next, give_up);
}

void redlock_lock::granted(const core::owner_id& id, fencing_token token) {
  const std::lock_guard guard{m_};
  held_[id] = token;
}

void redlock_lock::take_out(const core::owner_id& id) {
  const std::lock_guard guard{m_};
  held_.erase(id);
}

bool redlock_lock::holds(const core::owner_id& id) const {
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
