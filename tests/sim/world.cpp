#include "sim/world.hpp"

#include <algorithm>
#include <charconv>

#include "sim/redis_model.hpp"
#include "sim/worker.hpp"

namespace holdfast::sim {

namespace {

// Realistic readings: a wall clock of today, hosts that have been up for a while.
constexpr std::int64_t wall_start = 1'760'000'000 * second;
constexpr std::int64_t boot_start = 100'000 * second;
// Clients pause for half a second at most between attempts to connect; until then one with little
// patience may still give up.
constexpr instant reconnect_pace = second;
// After the last fault, in virtual time: to serve everybody, steps back of the node's clock apart.
constexpr instant calm_limit = 100 * second;
// The scripts let a queue that nobody looks after expire after ten minutes, by the node's clock.
constexpr instant queue_life = 720 * second;

std::uint64_t field(std::string_view value, std::string_view name) {
  const auto at = value.find(name);
  if (at == std::string_view::npos) return 0;
  std::uint64_t number = 0;
  std::from_chars(value.data() + at + name.size(), value.data() + value.size(), number);
  return number;
}

std::uint64_t mixed(std::uint64_t sum, std::string_view text) {
  for (const char c : text)
    sum = (sum ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  return sum;
}

core::lease_rule followed(core::lease_rule rule, const left_out& without) {
  if (without.drift) rule.validity.drift_per_mille = 0;
  return rule;
}

}  // namespace

world::world(std::uint64_t seed, script_engine& engine, const lock_scripts& scripts,
             const left_out& left, bool traced)
    : the{seed},
      rule{followed(the.rule, left)},
      trace{time},
      judge{time, trace, locks_max},
      without{left},
      scripts_{scripts},
      random_{seed, 2},
      net_{time, seed, the.manners},
      owners_(locks_max) {
  if (traced) trace.keep();
  const auto clock = [&](std::int64_t start) {
    return drifting_clock{start + random_.between(0, second),
                          random_.between(-the.drift_ppm_max, the.drift_ppm_max)};
  };
  node_ = std::make_unique<node>(time, engine, "node", clock(wall_start), seed);
  net_.observe = [this](node& at, const script_request& what, const reply& said) {
    observe(at, what, said);
  };
  for (std::size_t i = 0; i < the.processes; ++i) {
    const auto boot = clock(boot_start);
    hosts_.push_back(
        {std::make_unique<process>(time, "p" + std::to_string(i), boot, clock(wall_start)), {}});
  }
  for (std::size_t i = 0; i < the.workers; ++i) {
    const auto on = i % the.processes;
    auto& all = hosts_[on].workers;
    all.push_back(std::make_unique<worker>(
        *this, *hosts_[on].of, on, "p" + std::to_string(on) + ".w" + std::to_string(all.size()),
        random_.bits()));
  }
  busy_workers_ = the.workers;
  clients_.resize(the.processes);
  keepers_.resize(the.processes);
  if (!the.drift_bound_kept) judge.exclusion_void_until(1'000'000 * second);
}

world::~world() = default;

// A process begins its life, with a client of its own.
void world::start(std::size_t which) {
  auto& here = hosts_[which];
  all_clients_.push_back(
      std::make_unique<redis_model>(net_, *here.of, *node_, scripts_, without, random_.bits()));
  clients_[which] = all_clients_.back().get();
  all_keepers_.push_back(
      std::make_unique<keeper_model>(*here.of, *clients_[which], the.operation_timeout,
                                     [&here](lease& lost, loss why, bool too_early) {
                                       // Any worker of the process can be told: what follows is the
                                       // same.
                                       for (const auto& one : here.workers) {
                                         if (one->owns(lost))
                                           return one->lost(lost, why, too_early);
                                       }
                                     }));
  keepers_[which] = all_keepers_.back().get();
  for (const auto& one : here.workers)
    one->start();
}

lease& world::keep(std::unique_ptr<lease> fresh) {
  leases_.push_back(std::move(fresh));
  return *leases_.back();
}

verdict world::run() {
  for (std::size_t i = 0; i < hosts_.size(); ++i)
    start(i);
  if (!the.faults.empty()) plan_next_fault();
  save_now_and_then();
  time.at(the.faults_end, [this] {
    const auto from = std::max(time.now(), faults_last_) + 1;
    time.at(from, [this] {
      net_.calm_down();
      if (trace.wanted()) trace.line("WORLD", "nothing goes wrong any more");
    });
    // What is on its way slowly still arrives, and clients connect again at their own pace.
    calm_from_ = from + the.manners.slow_most + reconnect_pace;
  });
  const auto limit = [this] {
    return calm_from_ ? *calm_from_ + calm_limit + stepped_back_ : 1'000'000 * second;
  };
  while (busy_workers_ > 0 && !judge.found() && time.step(limit())) {
  }
  if (!judge.found() && busy_workers_ > 0) {
    judge.broken("liveness", std::to_string(busy_workers_) + " workers were not done in time");
  }
  if (!judge.found()) check_leftovers();
  verdict result{judge.found(), judge.acquisitions(), scripts_run_, fingerprint_, {}, {}};
  if (trace.wanted()) {
    result.plan = the.described();
    result.trace = trace.lines();
  }
  return result;
}

void world::save_now_and_then() {
  node_->save();
  time.at(time.now() + random_.spread(20, 1000) * millisecond, [this] {
    if (!calm_from_) save_now_and_then();
  });
}

// ---- what goes wrong ---------------------------------------------------------------------------

void world::plan_next_fault() {
  const auto when = time.now() + random_.spread(the.fault_every / 8, the.fault_every * 2);
  if (when >= the.faults_end) return;
  time.at(when, [this] {
    const auto last = static_cast<std::int64_t>(the.faults.size()) - 1;
    const auto what = the.faults[static_cast<std::size_t>(random_.between(0, last))];
    if (trace.wanted()) trace.line("FAULT", std::string{name_of(what)});
    happen(what);
    plan_next_fault();
  });
}

void world::happen(fault what) {
  const auto which =
      static_cast<std::size_t>(random_.between(0, static_cast<std::int64_t>(hosts_.size()) - 1));
  auto& victim = *hosts_[which].of;
  const auto until = time.now() + random_.spread(millisecond, the.longest_fault);
  const auto some = [&](const auto& all) {
    return all[static_cast<std::size_t>(
        random_.between(0, static_cast<std::int64_t>(all.size()) - 1))];
  };
  switch (what) {
    case fault::pause:
      victim.stop();
      time.at(until, [&victim] { victim.proceed(); });
      return lasts(until);
    case fault::kill:
      return kill_process(which);
    case fault::client_wall:
      return victim.step_wall(random_.between(-3600, 3600) * second);
    case fault::cut: {
      if (net_.open().empty()) return;
      const bool node_hears = random_.chance(700);
      return some(net_.open())->cut(node_hears, random_.chance(700));
    }
    case fault::stall:
      if (net_.open().empty()) return;
      some(net_.open())->stall(some(both_directions), until);
      return lasts(until);
    case fault::partition: {
      const auto way = random_.between(1, 3);
      if ((way & 1) != 0) net_.block(victim, *node_, direction::to_node, until);
      if ((way & 2) != 0) net_.block(victim, *node_, direction::to_process, until);
      return lasts(until);
    }
    case fault::node_pause:
      for (const auto& one : hosts_)
        net_.block(*one.of, *node_, direction::to_node, until);
      return lasts(until);
    case fault::node_restart:
    case fault::node_rollback:
    case fault::node_empty:
      return restart_node(what);
    case fault::node_step_back:
      return step_node(-random_.spread(millisecond, 4 * second));
    case fault::node_step_on:
      return step_node(random_.spread(millisecond, 4 * second));
    case fault::foreign: {
      const auto& key = keys_of(static_cast<std::size_t>(
                                    random_.between(0, static_cast<std::int64_t>(the.locks) - 1)))
                            .lock;
      const auto ttl = std::to_string(random_.spread(1, 200));
      const std::vector<std::string_view> words{"SET", key, "foreign", "NX", "PX", ttl};
      if (node_->up()) static_cast<void>(execute(node_->data, *node_, words));
      return look_at(key);
    }
  }
}

void world::kill_process(std::size_t which) {
  auto& victim = *hosts_[which].of;
  if (!victim.runs()) return;
  victim.kill();
  net_.process_died(victim, random_.chance(300));
  const auto back = time.now() + random_.spread(millisecond, the.longest_fault);
  lasts(back);
  time.at(back, [this, which] {
    hosts_[which].of->start();
    start(which);
  });
}

void world::restart_node(fault how) {
  if (!node_->up()) return;
  node_->kill();
  net_.node_died(*node_, random_.chance(300));
  const auto back = time.now() + random_.spread(millisecond, the.longest_fault);
  lasts(back);
  time.at(back, [this, how] {
    if (how != fault::node_restart) {
      node_->data = how == fault::node_empty ? keyspace{} : node_->saved();
      judge.data_lost();
      judge.exclusion_void_until(time.now() + the.rule.ttl.count() * 6 / 5);
      check_tokens_rest();
    }
    node_->start();
    for (std::size_t lock = 0; lock < the.locks; ++lock)
      look_at(keys_of(lock).lock);
  });
}

void world::step_node(std::int64_t by) {
  node_->step_wall(by);
  if (by > 0) judge.exclusion_void_until(time.now() + the.rule.ttl.count() * 6 / 5);
  if (by < 0) stepped_back_ -= by;
  check_tokens_rest();
}

// Tokens stay in order by the counter, or by the clock where the counter went back: unless both are
// behind the last token.
void world::check_tokens_rest() {
  if (!judge.lost_data()) return;
  if (node_->wall_us() <= static_cast<std::int64_t>(judge.highest_token())) judge.tokens_void();
}

// ---- what the judge sees at the node -----------------------------------------------------------

void world::observe(node&, const script_request& what, const reply& said) {
  ++scripts_run_;
  const auto text = said.shown();
  fingerprint_ = mixed(fingerprint_ + static_cast<std::uint64_t>(time.now()), text);
  const auto lock = what.keys.empty() ? std::string_view{} : what.keys[0];
  if (trace.wanted()) {
    const auto* name = what.script.at == scripts_.acquire.at   ? "acquire"
                       : what.script.at == scripts_.release.at ? "release"
                                                               : "renew";
    trace.line("node", std::string{name} + " " + std::string{lock} + " " + brief(what.args[0]) +
                           " → " + text.substr(0, 90));
  }
  if (said.is_error()) judge.broken("script error", text);
  if (what.script.at != scripts_.renew.at) return look_at(lock);
  for (const auto key : what.keys)
    look_at(key);
}

void world::look_at(std::string_view key) {
  std::size_t lock = 0;
  while (keys_of(lock).lock != key)
    ++lock;
  const auto* found = node_->data.find(key, node_->wall_us() / 1000);
  const auto* value = found == nullptr ? nullptr : std::get_if<std::string>(&found->value);
  const auto id =
      value == nullptr
          ? std::nullopt
          : core::owner_id::parse(std::string_view{*value}.substr(0, core::owner_id::digits));
  if (id == owners_[lock]) return;
  owners_[lock] = id;
  if (!id) return;
  const auto last = field(*value, ";token=") + field(*value, ";block=") - 1;
  judge.store_gave(lock, *id, last);
}

// Nobody wants anything any more: what is left must be the record of tokens, and for ten minutes
// what those left in the queue who died there.
void world::check_leftovers() {
  while (!judge.found() && time.step(the.faults_end)) {
  }
  const auto settled = std::max(time.now(), calm_from_.value_or(0)) + stepped_back_ +
                       3 * the.rule.ttl.count() + the.release_budget.count() + 2 * second;
  while (!judge.found() && time.step(settled)) {
  }
  for (std::size_t lock = 0; lock < the.locks && !judge.found(); ++lock) {
    const auto now = node_->wall_us() / 1000;
    const auto& keys = keys_of(lock);
    if (node_->data.find(keys.lock, now) != nullptr) {
      judge.broken("leftover", keys.lock + " is still taken");
    }
    auto* queue = node_->data.find(keys.queue, now);
    if (queue == nullptr || judge.lost_data()) continue;
    for (const auto& entry : std::get<stored::list>(queue->value)) {
      const auto id = core::owner_id::parse(entry.substr(0, core::owner_id::digits));
      if (id && judge.is_over(*id)) {
        judge.broken("leftover", brief(entry) + " is still queued, and was over for sure");
      }
    }
  }
  while (!judge.found() && time.step(settled + queue_life)) {
  }
  for (const auto& [key, value] : node_->data.all(node_->wall_us() / 1000)) {
    if (!key.ends_with(":slot")) judge.broken("leftover", key + " is there after ten minutes");
  }
}

}  // namespace holdfast::sim
