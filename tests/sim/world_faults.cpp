// What goes wrong in a world.
#include <algorithm>
#include <array>

#include "sim/worker.hpp"
#include "sim/world.hpp"
#include "stores/redlock/node_set.hpp"

namespace holdfast::sim {

namespace {

// How far a clock that was stepped may be off.
constexpr std::int64_t client_off_max = 3600 * second;
constexpr std::int64_t client_off_mostly = 30 * second;
constexpr std::int64_t node_off_max = 20 * second;

}  // namespace

void world::plan_next_fault() {
  const auto when = time.now() + random_.spread(the.fault_every / 8, the.fault_every * 2);
  if (when >= the.faults_end) return;
  time.at(when, [this] {
    const auto what = random_.one_of(the.faults);
    if (trace.wanted()) trace.line("FAULT", std::string{name_of(what)});
    happen(what);
    plan_next_fault();
  });
}

void world::happen(fault what) {
  const auto which = random_.below(hosts_.size());
  auto& victim = *hosts_[which].of;
  auto& at = *random_.one_of(nodes_);
  const auto until = soon(the.longest_fault);
  switch (what) {
    case fault::pause:
      victim.stop();
      time.at(until, [&victim] { victim.proceed(); });
      return lasts(until);
    case fault::kill:
      return kill_process(which);
    case fault::client_wall:
      return set_wall(hosts_[which]);
    case fault::cut: {
      if (net_.open().empty()) return;
      const bool node_hears = random_.chance(700);
      return random_.one_of(net_.open())->cut(node_hears, random_.chance(700));
    }
    case fault::stall:
      if (net_.open().empty()) return;
      random_.one_of(net_.open())->stall(random_.one_of(both_directions), until);
      return lasts(until);
    case fault::partition:
      part(victim, at, until);
      // Sometimes from several nodes, each in its own way.
      for (const auto& one : nodes_) {
        if (one.get() != &at && random_.chance(300)) part(victim, *one, until);
      }
      return lasts(until);
    case fault::node_pause:
      for (const auto& one : hosts_)
        net_.block(*one.of, at, direction::to_node, until);
      return lasts(until);
    case fault::node_restart:
    case fault::node_rollback:
    case fault::node_empty:
      return restart_node(at, what);
    case fault::node_step_back:
      return step_node(at, -random_.spread(millisecond, 4 * second));
    case fault::node_step_on:
      return step_node(at, random_.spread(millisecond, 4 * second));
    case fault::foreign:
      return take_as_foreigner();
    case fault::all_empty:
      for (const auto& one : nodes_)
        crash(*one, fault::node_empty, soon(the.longest_fault));
      return;
    case fault::vanish:
      return drop_lock(at);
    case fault::many_restart:
      return restart_many();
    case fault::node_flush:
      if (!at.up()) return;
      forget(at, fault::node_empty);
      return look_at_locks(at);
    case fault::node_gone:
      return lose_for_good(at);
    case fault::vote_forgotten:
    case fault::admission_outdated:
    case fault::renewal_interrupted:
    case fault::repair_overtaken:
    case fault::ask_overtaken:
    case fault::answer_lost:
      return lie_in_wait(what);
  }
}

void world::part(const process& from, const node& to, instant until) {
  const auto way = random_.between(1, 3);
  if ((way & 1) != 0) net_.block(from, to, direction::to_node, until);
  if ((way & 2) != 0) net_.block(from, to, direction::to_process, until);
}

void world::drop_lock(node& at) {
  const auto until = time.now() + the.rule.ttl.count() * 6 / 5;
  for (std::size_t lock = 0; lock < the.locks; ++lock) {
    const auto& key = keys_of(lock).lock;
    if (!at.owner_of(key)) continue;
    if (leases_rest_on(at)) judge.exclusion_void_until(until);
    at.excuse_until(until);
    judge.locks_lost(at.index);
    at.data.erase(key, at.wall_us() / 1000);
    return look_at(at, key);
  }
}

void world::set_wall(host& on) {
  const auto most = random_.chance(900) && is_quorum() ? client_off_mostly : client_off_max;
  set_wall(on, random_.between(-most / second, most / second) * second);
}

void world::set_wall(host& on, std::int64_t off) {
  on.of->step_wall(off - on.wall_off);
  on.wall_off = off;
}

void world::take_as_foreigner() {
  const auto& key = keys_of(random_.below(the.locks)).lock;
  const auto ttl = std::to_string(random_.spread(1, 200));
  const std::vector<std::string_view> words{"SET", key, "foreign", "NX", "PX", ttl};
  for (const auto& one : nodes_) {
    if (is_quorum() && random_.chance(300)) continue;
    if (one->up()) static_cast<void>(execute(one->data, *one, words));
    look_at(*one, key);
  }
}

void world::kill_process(std::size_t which) {
  auto& victim = *hosts_[which].of;
  if (!victim.runs()) return;
  victim.kill();
  net_.process_died(victim, random_.chance(300));
  const auto back = soon(the.longest_fault);
  lasts(back);
  time.at(back, [this, which] {
    hosts_[which].of->start();
    start(which);
  });
}

// Of a quorum, mostly a minority at most is down, or does not vote yet, at any time: else most
// worlds would be about nothing but waiting.
void world::restart_node(node& which, fault how) {
  const auto back = soon(the.longest_fault);
  if (!is_quorum()) return crash(which, how, back);
  if (the.outages) return crash(which, which.durable ? fault::node_restart : how, back);
  const auto others_out = std::count_if(nodes_.begin(), nodes_.end(), [&](const auto& one) {
    return one.get() != &which && (!one->up() || !votes(*one));
  });
  const auto spare = nodes_.size() - core::majority_of(nodes_.size());
  if (static_cast<std::size_t>(others_out) >= spare) return;
  crash(which, which.durable ? fault::node_restart : how, back);
}

// Together, as after a power cut: all of them or just a majority, each with what it has left.
void world::restart_many() {
  auto least = static_cast<std::int64_t>(core::majority_of(nodes_.size()));
  const auto most = static_cast<std::int64_t>(nodes_.size());
  if (random_.chance(500)) least = most;
  auto left = random_.between(least, most);
  const auto first = random_.below(nodes_.size());
  constexpr std::array hows{fault::node_restart, fault::node_rollback, fault::node_empty};
  const auto any_how = [&] { return random_.one_of(hows); };
  const auto common = any_how();
  const bool alike = random_.chance(600);
  for (std::size_t i = 0; i < nodes_.size() && left > 0; ++i, --left) {
    auto& one = *nodes_[(first + i) % nodes_.size()];
    const auto how = alike ? common : any_how();
    crash(one, one.durable ? fault::node_restart : how, soon(the.longest_fault));
  }
}

// A minority at most, for as long as anybody wants anything.
void world::lose_for_good(node& which) {
  const auto spare = nodes_.size() - core::majority_of(nodes_.size());
  if (!which.up() || gone_.size() >= spare) return;
  gone_.push_back(&which);
  which.kill();
  net_.node_died(which, random_.chance(300));
}

// What was given back meanwhile was told to it for a while only.
void world::revive_lost() {
  for (auto* one : gone_) {
    one->rolled_back = true;
    one->start();
  }
}

// A host that has just booted: its clock is behind, and mostly stepped right in a moment. Keys that
// the node still has live for longer then; a clock that stays behind is that of an empty one. One
// that is ahead is stepped before the node votes: locks that it gave would last for as long.
void world::boot_slowly(node& which, bool empty) {
  constexpr instant slow_mostly = 300 * second;
  constexpr instant slow_max = 3600 * second;
  const auto ttl = the.max_ttl.count();
  const auto by = random_.chance(700) ? random_.spread(ttl, slow_mostly)
                                      : random_.spread(millisecond, slow_max);
  if (random_.chance(300)) {
    step_clock(which, by);
    const auto right = time.now() + random_.between(ttl / 4, ttl * 4 / 5);
    lasts(right);
    time.at(right, [this, &which, by] { step_clock(which, -by); });
    return;
  }
  step_clock(which, -by);
  if (empty && random_.chance(150)) {
    which.save();  // nothing older comes back
    return;
  }
  const auto right = time.now() + random_.spread(millisecond, random_.chance(700) ? ttl : 3 * ttl);
  lasts(right);
  time.at(right, [this, &which, by] { step_clock(which, by); });
}

void world::crash(node& which, fault how, instant back) {
  if (!which.up()) return;
  which.kill();
  forgot_at_[which.index] = time.now();
  net_.node_died(which, random_.chance(300));
  lasts(back);
  time.at(back, [this, &which, how] {
    if (how != fault::node_restart) forget(which, how);
    if (is_quorum() && random_.chance(the.slow_boots)) {
      boot_slowly(which, how == fault::node_empty);
    }
    which.start();
    look_at_locks(which);
  });
}

void world::forget(node& which, fault how) {
  if (which.up()) forgot_at_[which.index] = time.now();
  which.data = how == fault::node_empty ? keyspace{} : which.saved();
  which.rolled_back = which.rolled_back || how == fault::node_rollback;
  if (is_quorum()) {
    // It does not vote until nothing can depend on what it has forgotten: nothing is void.
    which.excuse_until(time.now() + the.max_ttl.count() * 6 / 5);
    judge.locks_lost(which.index);
    return;
  }
  judge.data_lost();
  judge.exclusion_void_until(time.now() + the.rule.ttl.count() * 6 / 5);
  check_tokens_rest();
}

void world::step_node(node& which, std::int64_t by) {
  if (std::abs(which.wall_off + by) > node_off_max) return;
  step_clock(which, by);
  if (by < 0) stepped_back_ -= by;
}

void world::step_clock(node& which, std::int64_t by) {
  note_clocks();
  const auto until = time.now() + the.rule.ttl.count() * 6 / 5;
  const bool breaks = by > 0 && (!is_quorum() || leases_rest_on(which));
  which.wall_off += by;
  which.step_wall(by);
  note_clocks();
  if (breaks) judge.exclusion_void_until(until);
  if (by > 0) {
    which.excuse_until(until);
    judge.locks_lost(which.index);
  }
  if (!is_quorum()) check_tokens_rest();
}

void world::note_clocks() {
  for (const auto& one : nodes_)
    clock_peak_ = std::max(clock_peak_, one->wall_us() * microsecond - time.now());
}

// Whether a lease could be lost to others if this node let go of its locks early: not while it does
// not vote, nor if a majority of the others has the lock for as long.
bool world::leases_rest_on(node& which) {
  if (!votes(which)) return false;
  const auto left = [](node& at, std::string_view key) -> std::int64_t {
    const auto now = at.wall_us() / 1000;
    const auto* found = at.data.find(key, now);
    return found == nullptr || !found->expires_ms ? 0 : *found->expires_ms - now;
  };
  const auto drift = the.drift_ppm_max > 0 ? the.rule.ttl.count() / millisecond / 100 + 1 : 0;
  for (std::size_t lock = 0; lock < the.locks; ++lock) {
    const auto& key = keys_of(lock).lock;
    const auto id = which.owner_of(key);
    if (!id) continue;
    const auto token = judge.token_of(*id).value_or(fencing_token{UINT64_MAX});
    const auto as_long = std::count_if(nodes_.begin(), nodes_.end(), [&](const auto& one) {
      return one.get() != &which && !one->excused() && one->has_firmly(key, *id, token) &&
             left(*one, key) >= left(which, key) + drift;
    });
    if (static_cast<std::size_t>(as_long) < core::majority_of(nodes_.size())) return true;
  }
  return false;
}

// Tokens stay in order by the counter, or by the clock where the counter went back: unless both are
// behind the last token.
void world::check_tokens_rest() {
  if (!judge.lost_data()) return;
  if (nodes_[0]->wall_us() <= static_cast<std::int64_t>(judge.highest_token())) {
    judge.tokens_void();
  }
}

}  // namespace holdfast::sim
