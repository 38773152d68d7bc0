#include "sim/world.hpp"

#include <algorithm>

#include "redlock_scripts.hpp"
#include "sim/latch_user.hpp"
#include "sim/worker.hpp"
#include "stores/redis/script_values.hpp"
#include "stores/redlock/node_set.hpp"

namespace holdfast::sim {

namespace {

// Realistic readings: a wall clock of today, hosts that have been up for a while.
constexpr std::int64_t wall_start = 1'760'000'000 * second;
constexpr std::int64_t boot_start = 100'000 * second;
// As a client leaves them whose clock is that far ahead; less than the nodes refuse.
constexpr std::int64_t counters_ahead = 55 * second;
// Clients pause for a second at most between attempts to connect; until then one with little
// patience may still give up.
constexpr instant reconnect_pace = second;
// By then a node that was away has been told what was given back meanwhile, in however many tries.
constexpr instant told_within = 2 * second;
// What a set takes beyond max_ttl to come back by itself: looks are a second apart, it takes two
// that find too few, and the first may just have failed.
constexpr instant back_in_a_moment = 5 * second;
// After the last fault, in virtual time: to serve everybody, steps back of the node's clock apart.
constexpr instant calm_limit = 100 * second;
core::lease_rule followed(core::lease_rule rule, const left_out& without) {
  if (without.drift) rule.validity.drift_per_mille = 0;
  if (without.half_drift) rule.validity.drift_per_mille /= 2;
  return rule;
}

}  // namespace

world::world(std::uint64_t seed, script_engine& engine, const shipped_scripts& scripts,
             const left_out& left, bool lenient, bool traced)
    : the{seed},
      rule{followed(the.rule, left)},
      trace{time},
      judge{time, trace, locks_max, core::capacity_of(the.of), lenient},
      latches{time, judge, the.latches, the.latch_parts},
      without{left},
      scripts_{scripts},
      random_{seed, 2},
      net_{time, seed, the.manners, scripts},
      owners_(the.nodes * locks_max),
      waits_(the.nodes),
      forgot_at_(the.nodes) {
  if (traced) trace.keep();
  make_nodes(engine);
  net_.observe = [this](node& at, process& from, const script_request& what, const reply& said) {
    observe(at, what, said);
    spring(at, from, what, said);
  };
  for (std::size_t i = 0; i < the.processes; ++i) {
    const auto boot = make_clock(boot_start, second, -1);
    const auto wall = make_clock(wall_start, second, -1);
    hosts_.push_back(
        {std::make_unique<process>(time, "p" + std::to_string(i), boot, wall, random_.bits()),
         {},
         {}});
  }
  for (std::size_t i = 0; i < the.workers; ++i) {
    const auto on = i % the.processes;
    auto& all = hosts_[on].workers;
    all.push_back(std::make_unique<worker>(
        *this, *hosts_[on].of, on, "p" + std::to_string(on) + ".w" + std::to_string(all.size()),
        random_.bits()));
  }
  for (std::uint32_t i = 0; i < the.latch_parts; ++i) {
    auto& here = hosts_[i % the.processes];
    here.parts.push_back(
        std::make_unique<latch_user>(*this, *here.of, i % the.processes, i, random_.bits()));
  }
  busy_workers_ = the.workers + the.latch_parts;
  clients_.resize(the.processes);
  if (!the.drift_bound_kept) judge.exclusion_void_until(1'000'000 * second);
}

// `way`: which way it goes if all go as far apart as they may.
drifting_clock world::make_clock(std::int64_t start, instant apart, int way) {
  const auto reading = start + random_.between(0, apart);
  const auto drift = random_.between(-the.drift_ppm_max, the.drift_ppm_max);
  return {reading, the.apart ? way * the.drift_ppm_max : drift};
}

void world::make_nodes(script_engine& engine) {
  for (std::size_t i = 0; i < the.nodes; ++i) {
    const auto name = is_quorum() ? "n" + std::to_string(i) : "node";
    nodes_.push_back(std::make_unique<node>(
        time, engine, name, make_clock(wall_start, the.clocks_apart, 1), the.seed + i * 1'000'003));
    auto& fresh = *nodes_.back();
    fresh.index = i;
    if (is_quorum()) fresh.durable = random_.chance(the.durable);
  }
  // Mostly somebody has vouched that the set is new, as `holdfast redlock init` does.
  for (std::size_t i = 0; i < the.nodes && is_quorum() && !the.new_set; ++i)
    vouch_for(*nodes_[i]);
}

void world::vouch_for(node& fresh) {
  const auto set = stores::redlock::identity_of(quorum_config(nodes_, the));
  auto args = stores::redlock::vouched_script(set, fresh.index, {}, {}).args;
  for (std::size_t lock = 0; lock < the.locks && the.dense; ++lock) {
    args.push_back("c:" + std::to_string(stores::redis::hash_slot(keys_of(lock).lock)));
    args.push_back(std::to_string((wall_start + counters_ahead) / microsecond));
  }
  args.push_back(fresh.run_id());
  const std::string record{stores::redlock::record_key};
  static_cast<void>(
      fresh.run(scripts_.run_of(stores::redlock::scripts::admit, {record}, std::move(args))));
}

world::~world() {
  over_ = true;
  all_clients_.clear();
  net_.let_go();
  time.end();
}

// A process begins its life, with a client of its own.
void world::start(std::size_t which) {
  auto& here = hosts_[which];
  here.of->enter([&] {
    all_clients_.push_back(
        std::make_unique<client>(net_, *here.of, nodes_, the, rule, observer_of(which)));
    clients_[which] = all_clients_.back().get();
    for (const auto& one : here.workers)
      one->start();
    for (const auto& one : here.parts)
      one->start();
  });
}

store_observer world::observer_of(std::size_t which) {
  auto& of = *hosts_[which].of;
  store_observer all;
  all.over = unless_over([this, which](const core::owner_id& id) {
    if (clients_[which]->withdrawn_for_good(id)) judge.over(id);
  });
  all.renewed = unless_over([this, &of](const core::owner_id& id, core::time_point sent) {
    if (is_quorum()) judge.renewed(id, of.when(sent));
  });
  all.refused = unless_over([this](const core::owner_id& id, loss why) { judge.refused(id, why); });
  all.trace = [this, &of](const core::owner_id& id, const char* what) {
    if (trace.wanted() && !over_) trace.line(of.name, brief(id.text()) + " " + what);
  };
  return all;
}

verdict world::run() {
  for (std::size_t i = 0; i < hosts_.size(); ++i)
    start(i);
  if (!the.faults.empty()) plan_next_fault();
  for (const auto& one : nodes_)
    save_now_and_then(*one);
  time.at(the.faults_end, [this] {
    const auto from = std::max(time.now(), faults_last_) + 1;
    time.at(from, [this] { calm_down(); });
    // What is on its way slowly still arrives, and clients connect again at their own pace.
    calm_from_ = from + the.manners.slow_most + reconnect_pace;
    if (is_quorum()) calm_from_ = *calm_from_ + reconnect_pace;
    if (is_quorum() && may_be_out()) {
      calm_from_ = *calm_from_ + the.max_ttl.count() * 6 / 5 + back_in_a_moment;
      time.at(*calm_from_, [this, from] { check_all_vote(from); });
    }
    if (is_quorum()) time.at(*calm_from_ + told_within, [this] { check_given_back(); });
  });
  const auto limit = [this] {
    return calm_from_ ? *calm_from_ + calm_limit + stepped_back_ : 1'000'000 * second;
  };
  while (busy_workers_ > 0 && !judge.found() && time.step(limit())) {
  }
  if (!judge.found() && busy_workers_ > 0) {
    judge.broken("liveness", std::to_string(busy_workers_) + " workers were not done in time");
  }
  revive_lost();
  if (!judge.found()) check_leftovers();
  verdict result{judge.found(), judge.acquisitions(), scripts_run_, fingerprint_, {}, {}};
  if (trace.wanted()) {
    result.plan = the.described();
    result.trace = trace.lines();
  }
  return result;
}

// A majority of the nodes may wait, so that nobody can be served.
bool world::may_be_out() const { return the.outages || the.new_set || the.has(fault::all_empty); }

void world::save_now_and_then(node& which) {
  which.save();
  if (!the.has(fault::node_rollback) && !the.has(fault::many_restart)) {
    return;
  }
  time.at(time.now() + random_.spread(20, 1000) * millisecond, [this, &which] {
    if (!calm_from_) save_now_and_then(which);
  });
}

void world::calm_down() {
  net_.calm_down();
  for (auto& one : hosts_)
    one.of->step_wall(-std::exchange(one.wall_off, 0));
  if (trace.wanted()) trace.line("WORLD", "nothing goes wrong any more");
}

}  // namespace holdfast::sim
