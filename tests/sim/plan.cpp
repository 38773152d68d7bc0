#include "sim/plan.hpp"

#include <algorithm>
#include <array>

#include "sim/random.hpp"

namespace holdfast::sim {

namespace {

constexpr int acquisitions_least = 100;  // in all

std::size_t count(random_stream& random, std::int64_t least, std::int64_t most) {
  return static_cast<std::size_t>(random.between(least, most));
}

core::duration ms(std::int64_t value) { return std::chrono::milliseconds{value}; }

}  // namespace

std::string_view name_of(fault what) {
  std::string_view names =
      "pause kill client_wall cut stall partition node_pause node_restart node_rollback node_empty "
      "node_step_back node_step_on foreign all_empty vanish many_restart node_flush node_gone "
      "vote_forgotten admission_outdated renewal_interrupted repair_overtaken ask_overtaken "
      "answer_lost";
  for (auto before = static_cast<int>(what); before > 0; --before)
    names.remove_prefix(names.find(' ') + 1);
  return names.substr(0, names.find(' '));
}

std::optional<fault> fault_called(std::string_view name) {
  for (int kind = 0; kind < fault_kinds; ++kind) {
    if (name_of(static_cast<fault>(kind)) == name) return static_cast<fault>(kind);
  }
  return std::nullopt;
}

plan::plan(std::uint64_t from) : seed{from}, store{store_of(from)}, nodes{1} {
  random_stream random{seed, 1};
  processes = count(random, 2, 4);
  workers = count(random, 4, 8);
  locks = random.chance(600) ? 1 : count(random, 2, 3);
  acquisitions = acquisitions_least / static_cast<int>(workers) + 1;

  const auto ttl = random.spread(100, 2000);
  rule.ttl = ms(ttl);
  // Small margins leave little to chance: with a wide one, an error of a few milliseconds is
  // forgiven.
  rule.validity.margin = ms(random.chance(700) ? random.between(0, 2) : ttl / 10);
  rule.validity.drift_per_mille = 10;
  rule.renew = !random.chance(200);
  // Two clocks that both drift by 0.49 % are within the bound of 1 %.
  drift_bound_kept = !random.chance(50);
  drift_ppm_max = drift_bound_kept ? (random.chance(500) ? 4900 : 0) : 100'000;

  impatient = random.chance(800) ? 60 : 400;
  operation_timeout = ms(random.spread(50, 2000));
  unreachable_limit = ms(random.spread(500, 5000));
  release_budget = ms(random.spread(100, 1000));

  hands_over = seed / 2 % 2 == 0;
  manners.delay_most = random.spread(100, 4000) * microsecond;
  manners.slow_per_mille = random.chance(500) ? static_cast<int>(random.between(1, 40)) : 0;
  manners.slow_most = random.spread(10, 2 * ttl) * millisecond;

  const bool calm = random.chance(50);
  // Few kinds at a time: all at once would hide what only some of them do together. Losing data
  // and stepping clocks void promises, so most seeds do without.
  for (int kind = 0; kind < fault_kinds; ++kind) {
    const auto what = static_cast<fault>(kind);
    if (what >= fault::all_empty) continue;
    const bool voids = what == fault::node_rollback || what == fault::node_empty ||
                       what == fault::node_step_back || what == fault::node_step_on;
    if (random.chance(voids ? 80 : 350) && !calm) faults.push_back(what);
  }
  fault_every = random.spread(20, 400) * millisecond;
  faults_end = random.spread(500, 4000) * millisecond;
  longest_fault = random.spread(10, 3 * ttl) * millisecond;
  if (store == store_kind::redlock) {
    become_quorum();
  } else {
    share();
    count_down();
  }
}

// Some worlds have locks that several may hold. Other kinds of client do not know those: they would
// take the name for another lock, which is an error.
void plan::share() {
  random_stream random{seed, 5};
  if (!random.chance(250)) return;
  of.what = random.chance(500) ? core::lock_kind::form::shared : core::lock_kind::form::permits;
  if (of.what == core::lock_kind::form::permits) {
    of.permits = static_cast<std::uint32_t>(random.between(1, 4));
  }
  std::erase(faults, fault::foreign);
}

// Some worlds have latches beside their locks. A latch that is lost never opens.
void plan::count_down() {
  random_stream random{seed, 14};
  if (!random.chance(200)) return;
  latches = count(random, 4, 10);
  latch_parts = static_cast<std::uint32_t>(random.between(1, 6));
  latch_think = random.spread(10, 1500) * millisecond;
  std::erase_if(faults, [](fault what) {
    return what == fault::node_rollback || what == fault::node_empty ||
           what == fault::node_step_back || what == fault::node_step_on;
  });
}

// The promises that a quorum makes hold while a minority of its nodes forgets: what a crash does is
// looked at often here.
void plan::become_quorum() {
  random_stream random{seed, 4};
  nodes = random.chance(800) ? 3 : 5;
  // Fewer than on one Redis: whoever waits here asks all nodes again and again.
  processes = count(random, 2, 3);
  workers = count(random, 3, 5);
  acquisitions = acquisitions_least / static_cast<int>(workers) + 1;
  rule.ttl = std::min<core::duration>(rule.ttl, ms(800));
  rule.validity.margin = std::min(rule.validity.margin, rule.ttl / 10);
  node_timeout = ms(random.spread(5, 100));
  new_set = random.chance(50);
  resends = random.chance(300);
  dense = random.chance(300);
  apart = drift_ppm_max > 0 && random.chance(500);
  durable = random.chance(300) ? 500 : 0;
  const bool calm = faults.empty();
  std::erase_if(faults, [](fault what) {
    return what == fault::node_restart || what == fault::node_rollback ||
           what == fault::node_empty || what == fault::node_step_back ||
           what == fault::node_step_on;
  });
  // Leases so long that what is not given back is still there when nothing goes wrong any more.
  if (random.chance(200)) {
    rule.ttl = ms(random.between(6000, 10'000));
    max_ttl = rule.ttl;
    std::erase(faults, fault::kill);
    std::erase(faults, fault::foreign);
    manners.slow_most = std::min(manners.slow_most, 300 * millisecond);
    faults_end = random.spread(200, 1500) * millisecond;
    longest_fault = std::min(longest_fault, 500 * millisecond);
    return;
  }
  // Mostly short: nodes that forget are away for that long. Sometimes several claims of a waiter
  // fit into it, which may stand for half of it.
  max_ttl = rule.ttl * (random.chance(600) ? 1000 : random.between(1000, 8000)) / 1000;
  if (apart) {
    // Leases that end by themselves, beside somebody who waits for it.
    rule.renew = false;
    rule.validity.margin = ms(random.between(0, 1));
    long_work = 150;
    manners.delay_most = std::min(manners.delay_most, millisecond);
  }
  if (calm) return;
  for (const auto what : {fault::node_restart, fault::node_rollback, fault::node_empty}) {
    if (random.chance(300)) faults.push_back(what);
  }
  if (random.chance(100)) faults.push_back(fault::node_step_back);
  if (random.chance(100)) faults.push_back(fault::node_step_on);
  if (random.chance(30)) {
    // Nobody knows the last token then.
    faults = {fault::all_empty, fault::cut, fault::stall};
  } else if (random.chance(200)) {
    be_forgetful();
    if (random.chance(500)) ambush_admissions();
  } else if (random.chance(300)) {
    drop_locks();
  }
  if (random_stream{seed, 10}.chance(100)) return suffer_outages();
  if (random_stream{seed, 8}.chance(40)) ambush_messages();
}

// So quiet that nobody acquires while a node waits to vote again: what it forgot is not overtaken.
void plan::be_forgetful() {
  random_stream random{seed, 5};
  dense = true;
  rule.ttl = ms(random.between(50, 120));
  rule.validity.margin = ms(1);
  max_ttl = rule.ttl;
  node_timeout = ms(random.between(5, 20));
  think_most = 8 * max_ttl.count();
  long_work = 0;
  workers = count(random, 2, 3);
  processes = workers;
  acquisitions = acquisitions_least / static_cast<int>(workers) + 1;
  locks = 1;
  faults = {fault::node_empty, fault::node_pause, fault::partition, fault::stall};
  manners.slow_per_mille = 40;
  manners.slow_most = random.spread(10, 100) * millisecond;
  fault_every = random.spread(15, 60) * millisecond;
  faults_end = 8 * second;
  longest_fault = random.spread(10, 150) * millisecond;
}

// The same, aimed: a vote is forgotten that only a bare majority ever had, or a client sleeps over
// its part in letting a node vote again.
void plan::ambush_admissions() {
  random_stream random{seed, 7};
  durable = 0;
  // So slow that one node has voted long before the other.
  manners.slow_per_mille = 200;
  manners.slow_most = random.spread(10, 50) * millisecond;
  node_timeout = ms(random.between(20, 60));
  fault_every = 40 * millisecond;
  if (random.chance(500)) {
    faults = {fault::vote_forgotten};
    if (random.chance(500)) return;
    new_set = false;
    dense = false;  // so that votes are fresh, and the third node never has the lock
    // Its wait is cut short, if one clock that is wrong is enough for that.
    think_most = 10 * millisecond;
    long_work = 700;
    if (random.chance(800)) slow_boots = 1000;
    if (slow_boots > 0) manners.slow_per_mille = 50;  // who asks next is in time
    if (slow_boots > 0 && !random.chance(100)) return;
    // Not so often that a wait is never over: each step back costs one more.
    faults.assign(10, fault::vote_forgotten);
    faults.push_back(fault::client_wall);
    return;
  }
  faults = {fault::admission_outdated};
  think_most = 10 * millisecond;
  long_work = 500;
}

// A majority of the nodes forgets, or may have, and the set has to come back by itself.
void plan::suffer_outages() {
  random_stream random{seed, 11};
  outages = true;
  faults = {fault::many_restart};
  for (const auto what : {fault::node_restart, fault::node_rollback, fault::node_empty,
                          fault::node_flush, fault::node_flush, fault::node_gone}) {
    if (random.chance(400)) faults.push_back(what);
  }
  for (const auto what : {fault::client_wall, fault::cut, fault::partition, fault::node_pause,
                          fault::kill, fault::node_step_back, fault::node_step_on}) {
    if (random.chance(120)) faults.push_back(what);
  }
  if (random.chance(200)) faults.erase(faults.begin());
  if (faults.empty()) faults = {fault::node_flush};
  slow_boots = random.chance(300) ? 500 : 0;
  dense = random.chance(500);
  rule.ttl = ms(random.between(50, 300));
  rule.validity.margin = std::min(rule.validity.margin, rule.ttl / 10);
  max_ttl = rule.ttl * (random.chance(700) ? 1 : random.between(1, 6));
  node_timeout = ms(random.between(5, 30));
  think_most = (random.chance(500) ? 10 : 100) * millisecond;
  long_work = random.chance(500) ? 300 : 40;
  manners.slow_most = std::min(manners.slow_most, 300 * millisecond);
  if (random.chance(800)) clocks_apart = max_ttl.count() / 2;
  fault_every = random.spread(100, 1500) * millisecond;
  faults_end = random.between(2, 6) * second;
  longest_fault = random.spread(10, 500) * millisecond;
}

// Locks vanish from single nodes all the time, under attempts and under renewals.
void plan::drop_locks() {
  random_stream random{seed, 6};
  dense = random.chance(800);
  rule.ttl = ms(random.between(60, 200));
  rule.validity.margin = ms(1);
  rule.renew = true;
  max_ttl = rule.ttl;
  node_timeout = ms(random.between(10, 60));
  long_work = random.chance(500) ? 300 : 40;
  locks = 1;
  faults = {fault::vanish, fault::vanish, fault::vanish, fault::stall};
  if (resends) faults = {fault::cut, fault::cut, fault::cut, fault::vanish};
  manners.slow_per_mille = 40;
  if (nodes == 3 && random.chance(300)) {
    faults = {fault::renewal_interrupted};
    manners.slow_per_mille = 200;
    long_work = 500;
  }
  manners.slow_most = random.spread(5, 60) * millisecond;
  fault_every = random.spread(2, 15) * millisecond;
  faults_end = 4 * second;
  longest_fault = random.spread(5, 50) * millisecond;
}

// Messages that come at the worst moment. One user each in two processes: whoever gives back leaves
// a lock that nobody but the late message takes.
void plan::ambush_messages() {
  random_stream random{seed, 9};
  const std::array kinds{fault::repair_overtaken, fault::ask_overtaken, fault::answer_lost};
  faults = {random.one_of(kinds)};
  for (const auto what : {fault::pause, fault::client_wall, fault::cut, fault::stall, fault::vanish,
                          fault::node_pause}) {
    if (random.chance(80)) faults.push_back(what);
  }
  nodes = 3;
  processes = workers = 2;
  acquisitions = acquisitions_least / static_cast<int>(workers) + 1;
  locks = 1;
  durable = 0;
  new_set = false;
  // What clients propose is no matter of luck where counters are ahead; nor is it then believed.
  dense = random.chance(500) && !has(fault::ask_overtaken);
  apart = false;
  rule.ttl = ms(random.between(300, 600));
  rule.validity.margin = ms(1);
  rule.renew = true;
  max_ttl = rule.ttl;
  node_timeout = ms(random.between(10, 40));
  think_most = 10 * millisecond;
  long_work = 500;
  resends = has(fault::answer_lost);
  manners.slow_per_mille = 20;
  manners.slow_most = random.spread(5, 30) * millisecond;
  fault_every = 40 * millisecond;
  faults_end = 8 * second;
  longest_fault = random.spread(10, 200) * millisecond;
}

bool plan::has(fault what) const {
  return std::find(faults.begin(), faults.end(), what) != faults.end();
}

namespace {

std::string shown(const core::lock_kind& kind) {
  if (!core::is_shared(kind)) return {};
  return kind.what == core::lock_kind::form::shared
             ? " to read and write"
             : " of " + std::to_string(kind.permits) + " permits";
}

}  // namespace

std::string plan::described() const {
  const auto in_ms = [](core::duration value) {
    return std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(value).count());
  };
  std::string text = std::to_string(nodes) + (nodes == 1 ? " node, " : " nodes, ");
  text += std::to_string(processes) + " processes, " + std::to_string(workers) + " workers, " +
          std::to_string(locks) + " locks" + shown(of) + "; TTL " + in_ms(rule.ttl) +
          (rule.renew ? " ms" : " ms (not renewed)") +
          (hands_over ? ", handed on in processes" : "") + ", margin " +
          in_ms(rule.validity.margin) + " ms, claim " + in_ms(rule.claim_ttl()) +
          " ms, operation timeout " + in_ms(operation_timeout) + " ms; drift up to " +
          std::to_string(drift_ppm_max) + " ppm; faults until " +
          std::to_string(faults_end / millisecond) + " ms:";
  if (store == store_kind::redlock) {
    text.insert(text.rfind(';'), "; node timeout " + in_ms(node_timeout) + " ms, max_ttl " +
                                     in_ms(max_ttl) + " ms" + (new_set ? ", a new set" : "") +
                                     (resends ? ", acquires are sent again" : "") +
                                     (dense ? ", counters ahead of clocks" : "") +
                                     (slow_boots > 0 ? ", clocks slow at boot" : ""));
  }
  if (latches > 0) {
    text.insert(text.find(';'), ", " + std::to_string(latches) + " latches of " +
                                    std::to_string(latch_parts) + " parts");
  }
  for (const auto what : faults)
    text += " " + std::string{name_of(what)};
  return text;
}

}  // namespace holdfast::sim
