// What the judge sees of a world's nodes, and what it finds there in the end.
#include <algorithm>
#include <charconv>

#include "redlock_scripts.hpp"
#include "sim/world.hpp"
#include "stores/redis/script_values.hpp"
#include "stores/redlock/node_set.hpp"

namespace holdfast::sim {

namespace {

// Queues that nobody looks after expire, by the node's clock: after ten minutes on one Redis, after
// one on a quorum.
constexpr instant queue_life = 720 * second;
constexpr instant line_life = 90 * second;
// Longer than a release takes when nothing goes wrong.
constexpr instant release_takes = 200 * millisecond;

std::uint64_t field(std::string_view value, std::string_view name) {
  const auto at = value.find(name);
  if (at == std::string_view::npos) return 0;
  std::uint64_t number = 0;
  std::from_chars(value.data() + at + name.size(), value.data() + value.size(), number);
  return number;
}

std::uint64_t mixed(std::uint64_t sum, const reply& said) {
  sum = (sum ^ static_cast<std::uint64_t>(said.integer)) * 0x100000001b3ULL;
  for (const char c : said.text)
    sum = (sum ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  for (const auto& one : said.items)
    sum = mixed(sum, one);
  return sum;
}

// Of a clock, as a client sent it; from the world's time.
std::int64_t offset_in(std::string_view wall_ms, instant now) {
  return static_cast<std::int64_t>(stores::redis::read_number(wall_ms)) * millisecond - now;
}

std::optional<std::size_t> lock_of(std::string_view key) {
  for (std::size_t lock = 0; lock < locks_max; ++lock) {
    if (keys_of(lock).lock == key) return lock;
  }
  return std::nullopt;
}

}  // namespace

void world::observe(node& at, const script_request& what, const reply& said) {
  ++scripts_run_;
  fingerprint_ = mixed(fingerprint_ + static_cast<std::uint64_t>(time.now()), said);
  if (trace.wanted()) {
    const auto lock = what.keys.empty() ? std::string_view{} : what.keys[0];
    std::string line{what.which->name};
    line += " " + std::string{lock};
    // Ids are what a person looks for; a waiter's entry begins with two.
    for (const auto& arg : what.args) {
      if (arg.size() == core::owner_id::digits) line += " " + brief(arg);
      const bool is_entry = arg.size() > 2 * core::owner_id::digits &&
                            core::owner_id::parse(arg.substr(0, core::owner_id::digits));
      if (is_entry) line += " queued as " + brief(arg);
    }
    trace.line(at.name, line + " → " + said.shown().substr(0, 90));
  }
  if (said.is_error()) judge.broken("script error", said.shown());
  namespace scripts = stores::redlock::scripts;
  if (what.which == &scripts::standing) observe_wait(at, what, said);
  if (what.which == &scripts::admit && said.items[0].integer == 1) observe_admission(at, what);
  for (const auto& key : what.keys)
    look_at(at, key);
}

void world::look_at_locks(node& at) {
  for (std::size_t lock = 0; lock < the.locks; ++lock)
    look_at(at, keys_of(lock).lock);
}

void world::look_at(node& at, std::string_view key) {
  const auto lock = lock_of(key);
  if (!lock) return;
  if (core::is_shared(the.of)) return look_at_shares(at, *lock);
  const auto id = at.owner_of(key);
  auto& known = owners_[at.index * locks_max + *lock];
  if (id == known) return;
  known = id;
  if (!id) return;
  if (is_quorum()) return look_at_quorum(*lock, *id);
  const auto& value = std::get<std::string>(at.data.find(key, at.wall_us() / 1000)->value);
  judge.store_gave(*lock, *id, field(value, ";token=") + field(value, ";block=") - 1);
}

void world::look_at_shares(node& at, std::size_t lock) {
  const auto before = std::exchange(sharers_[lock], {});
  for (const auto& one : at.shares_of(keys_of(lock).lock)) {
    sharers_[lock].insert(one.id);
    if (!before.contains(one.id)) judge.store_gave(lock, one.id, one.token, one.units);
  }
}

// The store has given the lock away once a majority of those that vote have it for one attempt.
void world::look_at_quorum(std::size_t lock, const core::owner_id& id) {
  const auto having = std::count_if(nodes_.begin(), nodes_.end(), [&](const auto& one) {
    return one->owner_of(keys_of(lock).lock) == id && votes(*one);
  });
  if (static_cast<std::size_t>(having) >= core::majority_of(nodes_.size())) {
    judge.store_gave(lock, id, 0);
  }
}

// Beside the script: which wait the node is in, and the clocks that measure it.
void world::observe_wait(node& at, const script_request& what, const reply& said) {
  constexpr std::size_t wall = 2, wait_id = 3, counters = 4;
  const auto off = at.wall_us() * microsecond - time.now();
  if (what.args[counters] == "counters") {
    const auto clock = stores::redis::read_number(said.items[1].text) * 1'000'000 +
                       stores::redis::read_number(said.items[2].text);
    clocks_[clock] = off;
  }
  if (what.args[wait_id].empty() || !has_to_wait(said)) return;
  auto& seen = waits_[at.index];
  if (seen.id != said.items[4].text) {
    seen = {said.items[4].text, INT64_MAX, INT64_MAX, 0};
    // A snapshot of a node that waits: it may come back after the node has voted.
    if (the.outages && the.has(fault::node_rollback) && random_.chance(500)) at.save();
  }
  seen.node_off_least = std::min(seen.node_off_least, off);
  seen.client_off_least = std::min(seen.client_off_least, offset_in(what.args[wall], time.now()));
  seen.looked_at = time.now();
}

// What a rejoin rests on, and what it does not.
void world::observe_admission(node& at, const script_request& what) {
  constexpr std::size_t wall = 3, floor = 5;
  const auto seen = std::exchange(waits_[at.index], {});
  if (seen.id.empty()) return;  // another has let it in
  const auto ttl = the.max_ttl.count();
  const auto forgot_at = forgot_at_[at.index];
  // A wait that is cut short by two clocks that are wrong by as much each. A look that was held up
  // counts as a clock that is behind.
  const auto node_stepped = at.wall_us() * microsecond - time.now() - seen.node_off_least;
  const auto clients_apart = offset_in(what.args[wall], time.now()) - seen.client_off_least;
  const auto missing = forgot_at + ttl - time.now();
  const auto excused = std::min(node_stepped, clients_apart) + ttl / 100 + 2 * millisecond;
  if (missing > 0 && missing <= excused) judge.exclusion_void_until(forgot_at + ttl * 6 / 5);
  // Where too few were intact, the order of tokens rests on the clocks of those that were asked.
  const auto least = stores::redis::read_number(what.args[floor]);
  if (least == 0) return;
  note_clocks();
  const auto above = core::least_counter({}, the.max_ttl);
  const auto read = clocks_.find(least - above);
  const auto apart_max = std::min<instant>(core::clocks_apart_max.count(), ttl);
  if (read == clocks_.end() || read->second < clock_peak_ - apart_max) judge.tokens_void();
}

// When nothing has gone wrong for long enough, no node waits that clients look after.
void world::check_all_vote(instant nothing_wrong_since) {
  for (const auto& one : nodes_) {
    const auto& seen = waits_[one->index];
    const bool looked_after =
        seen.looked_at > time.now() - 2 * second && forgot_at_[one->index] < nothing_wrong_since;
    if (busy_workers_ == 0 || seen.id.empty() || !looked_after || !one->up()) continue;
    judge.broken("liveness", one->name + " does not vote yet, though nothing went wrong any more");
  }
}

bool world::has_to_wait(const reply& standing) {
  const auto& is = standing.items.at(0).text;
  return is == "blank" || is == "restarted";
}

bool world::votes(node& which) {
  const auto* found = which.data.find(stores::redlock::record_key, which.wall_us() / 1000);
  if (found == nullptr) return false;
  const auto& record = std::get<stored::hash>(found->value);
  const auto run = record.find("run");
  return run != record.end() && run->second == which.run_id();
}

// What a client has given back is gone from every node, now that all can be reached.
void world::check_given_back() {
  for (const auto& one : nodes_) {
    if (one->rolled_back || !one->up()) continue;
    for (std::size_t lock = 0; lock < the.locks; ++lock) {
      const auto id = one->owner_of(keys_of(lock).lock);
      if (!id || !is_given_back(lock, *id)) continue;
      time.at(time.now() + release_takes, [this, &at = *one, lock, id] {
        if (at.owner_of(keys_of(lock).lock) != id) return;
        judge.broken("not given back", at.name + " still has lock" + std::to_string(lock) +
                                           " for " + brief(id->text()) + ", which is over");
      });
    }
  }
}

bool world::is_given_back(std::size_t lock, const core::owner_id& id) const {
  return std::any_of(clients_.begin(), clients_.end(),
                     [&](const auto* one) { return one->gave_back(lock, id); });
}

void world::let_pass(instant until) {
  while (!judge.found() && time.step(until)) {
  }
}

// Nobody wants anything any more: what is left must be records, and for a while what those left in
// the queue who died there.
void world::check_leftovers() {
  let_pass(the.faults_end);
  const auto ttl = std::max(the.rule.ttl, the.max_ttl).count();
  const auto settled = std::max(time.now(), calm_from_.value_or(0)) + stepped_back_ + 3 * ttl +
                       the.release_budget.count() + 2 * second;
  let_pass(settled);
  for (std::size_t lock = 0; lock < the.locks; ++lock) {
    for (const auto& one : nodes_)
      check_free(*one, lock);
  }
  let_pass(settled + (is_quorum() ? line_life + stepped_back_ : queue_life));
  for (const auto& one : nodes_) {
    for (const auto& [key, value] : one->data.all(one->wall_us() / 1000)) {
      const bool record = is_quorum() ? key == stores::redlock::record_key : key.ends_with(":slot");
      if (!record) judge.broken("leftover", key + " is still there after minutes");
    }
  }
}

void world::check_free(node& at, std::size_t lock) {
  const auto now = at.wall_us() / 1000;
  if (at.data.find(keys_of(lock).lock, now) != nullptr) {
    judge.broken("leftover", keys_of(lock).lock + " is still taken");
  }
  if (is_quorum()) return check_line(at, lock);
  auto* queue = at.data.find(keys_of(lock).queue, now);
  if (queue == nullptr || judge.lost_data()) return;
  for (const auto& entry : std::get<stored::list>(queue->value)) {
    const auto id = core::owner_id::parse(entry.substr(0, core::owner_id::digits));
    if (id && judge.is_over(*id)) {
      judge.broken("leftover", brief(entry) + " is still queued, and was over for sure");
    }
  }
}

void world::check_line(node& at, std::size_t lock) {
  auto* line = at.data.find(stores::redlock::waiters_key(keys_of(lock).lock), at.wall_us() / 1000);
  if (line == nullptr || at.rolled_back) return;
  for (const auto& [ticket, waiter] : std::get<stored::sorted_set>(line->value).order) {
    const bool left = std::any_of(clients_.begin(), clients_.end(),
                                  [&](const auto* one) { return one->left_line(waiter); });
    if (left) judge.broken("leftover", brief(waiter) + " is still in the queue of " + at.name);
  }
}

}  // namespace holdfast::sim
