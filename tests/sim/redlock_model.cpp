#include "sim/redlock_model.hpp"

#include <algorithm>

#include "core/backoff.hpp"
#include "core/renewal_round.hpp"
#include "stores/redis/layout.hpp"
#include "stores/redis/script_values.hpp"
#include "stores/redlock/node_set.hpp"

namespace holdfast::sim {

namespace {

using core::quorum_outcome;
using std::chrono::milliseconds;
using stores::redis::milliseconds_text;
using stores::redlock::ahead_us_max;
using stores::redlock::has;
using stores::redlock::node_mask;
using stores::redlock::only;
using stores::redlock::record_key;

// As in redlock_lock.cpp.
constexpr std::string_view waiters_max = "10000";
constexpr core::duration ask_again_min = milliseconds{30};
constexpr core::duration ask_again_max = milliseconds{60};
constexpr core::duration rivals_remembered = std::chrono::seconds{1};
// Between one sweep and two: node_set::soon().
constexpr core::duration fill_in_min = milliseconds{50};
constexpr core::duration fill_in_max = milliseconds{100};

const std::string layout = std::to_string(stores::redis::layout_written);

bool is_ours_to_release(const reply& said) { return said.integer == 1; }

}  // namespace

redlock_model::redlock_model(network& net, process& in, const quorum_set& set,
                             const quorum_scripts& scripts, const left_out& without,
                             std::uint64_t seed)
    : in_{in},
      set_{set},
      scripts_{scripts},
      without_{without},
      random_{seed, 12},
      holder_{"host=" + in.name + ";pid=1;label="},
      inbox_{net, in, set, fresh_id()},
      admission_{in, set, calls_, scripts, without},
      locks_(locks_max) {
  const auto enrol = admission_model::enrol_call(set, scripts);
  const auto greeted = [this](const reply& said) {
    const bool votes = !said.items.empty() && said.items[0].integer == 1;
    if (!votes) look_after_nodes();
  };
  const auto dropped = [this](const script_request& release) {
    lingering_.insert(*core::owner_id::parse(release.args[2]));
  };
  for (auto* one : set.nodes) {
    calls_.push_back(std::make_unique<line_model>(
        net, in, *one, line_model::greeting{enrol, greeted}, dropped, random_.bits()));
    renewals_.push_back(std::make_unique<line_model>(net, in, *one, line_model::greeting{}, nullptr,
                                                     random_.bits()));
  }
}

redlock_model::waiting& redlock_model::memory_of(stores::attempt& who) {
  if (!who.memory) who.memory = std::make_shared<waiting>();
  return *static_cast<waiting*>(who.memory.get());
}

core::owner_id redlock_model::fresh_id() {
  const auto high = random_.bits();
  return core::owner_id::from_bits(high, random_.bits());
}

// ---- what is sent ------------------------------------------------------------------------------

redlock_model::call redlock_model::acquire_call(std::size_t lock, const stores::attempt& who,
                                                std::uint64_t proposal,
                                                const place_in_line* line) const {
  const auto& keys = quorum_keys_of(lock);
  return std::make_shared<script_request>(script_request{
      scripts_.acquire,
      {keys.lock, record_key, keys.queue},
      {set_.config, keys.counter, std::string{who.id.text()}, milliseconds_text(who.ttl),
       std::to_string(proposal), layout, "0", holder_, std::string{ahead_us_max},
       line == nullptr ? std::string{} : line->ticket, line == nullptr ? std::string{} : line->call,
       std::string{waiters_max}, who.asks > 1 ? "1" : ""},
      true});
}

redlock_model::call redlock_model::raise_call(std::size_t lock, const core::owner_id& id,
                                              std::uint64_t to) const {
  const auto& keys = quorum_keys_of(lock);
  return std::make_shared<script_request>(
      script_request{scripts_.raise,
                     {keys.lock, record_key},
                     {set_.config, keys.counter, std::string{id.text()}, std::to_string(to)},
                     true});
}

redlock_model::call redlock_model::release_call(std::size_t lock, const core::owner_id& id,
                                                std::string_view leaves_as,
                                                std::string_view stays_as,
                                                std::string_view ticket) const {
  const auto& keys = quorum_keys_of(lock);
  return std::make_shared<script_request>(
      script_request{scripts_.release,
                     {keys.lock, record_key, keys.queue},
                     {set_.config, keys.counter, std::string{id.text()}, layout, "0",
                      std::string{leaves_as}, std::string{stays_as}, std::string{ticket}},
                     true});
}

redlock_model::~redlock_model() {
  for (const auto& one : begun_) {
    if (const auto votes = one.lock()) votes->abandon();
  }
}

void redlock_model::give_back(std::size_t node, call what, core::time_point give_up) {
  if (without_.owed_release) return calls_[node]->send(std::move(what), nullptr);
  calls_[node]->send_for_sure(std::move(what), give_up, nullptr);
}

// ---- asking ------------------------------------------------------------------------------------

void redlock_model::begin(std::size_t lock, stores::attempt& who, waiting& mine,
                          const core::owner_id& id) {
  who.id = id;
  const auto ttl = without_.elapsed ? core::duration{core::never.time_since_epoch()} : who.ttl;
  const auto claim = without_.claim ? who.ttl : who.claim_ttl;
  mine.votes = std::make_shared<vote_model>(
      in_, calls_, set_.node_timeout, *this, vote_model::attempt{lock, id, mine.line},
      core::quorum_rule{set_.nodes.size(), ttl, mine.line ? claim : core::duration::zero(),
                        set_.max_ttl / 2},
      without_, set_.resends);
  begun_.push_back(mine.votes);
  if (mine.line) inbox_.expect(id);
  asked_.try_emplace(id, 0);
  locks_[lock].held[id] = {everybody()};
}

void redlock_model::ask(std::size_t lock, stores::attempt& who, core::time_point until,
                        on_answer done) {
  auto& mine = memory_of(who);
  auto& here = locks_[lock];
  if (who.may_wait && !mine.line) {
    mine.line = std::make_shared<place_in_line>();
    if (mine.ticket.empty()) mine.ticket = std::to_string(in_.wall_us());
    mine.line->ticket = mine.ticket;
    mine.line->call = stores::redlock::call_to(inbox_.inbox(), who.claim_ttl);
    mine.line->holder = holder_;
  }
  // An id is for one attempt only: what an earlier one left on its way must not touch this one.
  const bool first_time = !std::exchange(mine.asked, true);
  if (!mine.votes) begin(lock, who, mine, first_time || without_.fresh_id ? who.id : fresh_id());
  if (mine.votes->retire(in_.now())) begin_again(lock, who, mine);
  ++who.asks;
  auto first = ask_first(lock);
  const auto proposal = core::propose(here.last_seen, in_.wall_us());
  const auto votes = mine.votes;
  votes->ask({proposal, in_.now(), std::move(first.nodes)}, first.patience,
             acquire_call(lock, who, proposal, mine.line.get()),
             mine.line ? inbox_.take(who.id) : std::vector<vote_inbox_model::call>{});
  votes->wait(until, [this, lock, &who, votes = votes.get(), done = std::move(done)] {
    read_verdict(lock, who, *votes, done);
  });
}

void redlock_model::read_verdict(std::size_t lock, stores::attempt& who, vote_model& votes,
                                 const on_answer& done) {
  auto& mine = memory_of(who);
  auto& here = locks_[lock];
  const auto& machine = votes.machine();
  // It is kept only by what it has sent.
  const auto kept_alive = mine.votes;
  const auto outcome = machine.outcome();
  auto got = machine.granted();
  if (without_.early_count) got.counted_from = in_.now();
  if (without_.elapsed) got.ttl = std::min(got.ttl, who.ttl);
  here.last_seen = std::max({here.last_seen, machine.highest_seen(), got.token.value()});
  if (outcome == quorum_outcome::busy) {
    here.rivals_until = core::after(in_.now(), rivals_remembered);
    auto met = machine.met();
    if (mine.line) {
      inbox_.open();
      if (machine.over()) begin_again(lock, who, mine);
      met.queued = true;
      met.ask_within = std::min(core::between(ask_again_min, ask_again_max, random_.bits()),
                                who.claim_ttl / core::asks_per_claim);
      return done(core::answer{std::move(met)});
    }
  }
  mine.votes.reset();
  if (outcome == quorum_outcome::granted) {
    if (mine.line) stop_waiting(who, mine);
    auto& kept = here.held[who.id];
    const auto asked = asked_of(machine);
    kept.at = asked;
    kept.token = got.token;
    if (mine.line && mine.line->joined) kept.entry = mine.line->entry(who.id);
    if (!machine.asked_all()) fill_in({lock, who.id, got.ttl}, got.token, asked);
    return done(core::answer{got});
  }
  votes.give_back({});
  here.held.erase(who.id);
  if (outcome == quorum_outcome::busy) return done(core::answer{machine.met()});
  // That it is late is for the caller to see.
  if (outcome == quorum_outcome::late) return done(core::answer{got});
  static const std::vector<std::string> names(16, "node");
  auto why = machine.why({names.data(), set_.nodes.size()}, set_.node_timeout);
  if (why.code == errc::outcome_unknown) mine.unanswered.push_back(who.id);
  // It may not be asked again, nor withdrawn: some nodes said busy, and have it in line.
  if (mine.line) leave_line(lock, who, mine);
  done(fail(std::move(why)));
}

node_mask redlock_model::asked_of(const core::quorum_machine& machine) const {
  node_mask asked = 0;
  for (std::size_t i = 0; i < set_.nodes.size(); ++i)
    asked |= machine.was_asked(i) ? only(i) : 0;
  return asked;
}

void redlock_model::begin_again(std::size_t lock, stores::attempt& who, waiting& mine) {
  const auto before = std::exchange(mine.votes, nullptr);
  const auto was = who.id;
  begin(lock, who, mine, without_.fresh_id ? was : fresh_id());
  mine.line->joined = true;
  before->give_back(mine.line->entry(who.id));
  mine.votes->stand(asked_of(before->machine()), in_.now());
  if (who.id == was) return;
  follows_.emplace(who.id, was);
  inbox_.forget(was);
  locks_[lock].held.erase(was);
}

void redlock_model::stop_waiting(const stores::attempt& who, waiting& mine) {
  mine.line->waits = false;
  inbox_.forget(who.id);
}

// As node_set::ask_first(): all clients of a set know its nodes in the same order here.
core::first_asked redlock_model::ask_first(std::size_t lock) const {
  std::vector<core::node_habit> habits;
  for (const auto& one : calls_)
    habits.push_back(one->look());
  const bool rivals = in_.now() < locks_[lock].rivals_until;
  return core::ask_first(habits, lock % habits.size(),
                         rivals ? core::rivals::seen : core::rivals::none_seen, in_.now());
}

void redlock_model::fill_in(const renewing& one, fencing_token token, node_mask asked) {
  const auto due = core::between(fill_in_min, fill_in_max, random_.bits());
  in_.at(core::after(in_.now(), due), [this, one, token, asked] {
    if (!holds(one.lock, one.id) && !without_.fill_in_held) return;
    const auto value = stores::redis::value_begins(one.id, token) + ";block=1;since=0;" + holder_;
    for (std::size_t i = 0; i < set_.nodes.size(); ++i) {
      if (!has(asked, i)) repair(i, one, value);
    }
  });
}

void redlock_model::leave_line(std::size_t lock, const stores::attempt& who, waiting& mine) {
  stop_waiting(who, mine);
  const auto line = std::exchange(mine.line, nullptr);
  if (!line->joined) return;
  const auto what = release_call(lock, who.id, line->entry(who.id), {}, {});
  for (std::size_t i = 0; i < set_.nodes.size(); ++i)
    give_back(i, what, core::after(in_.now(), who.ttl));
}

void redlock_model::wait(std::size_t, stores::attempt& who, core::time_point until, on_woken done) {
  const auto nodes = memory_of(who).votes->machine().calls_missing();
  inbox_.wait(who.id, nodes, until, std::move(done));
}

void redlock_model::wake(stores::attempt& who) {
  if (memory_of(who).line) inbox_.wake(who.id);
}

// ---- giving back -------------------------------------------------------------------------------

void redlock_model::withdraw(std::size_t lock, stores::attempt& who, core::time_point until,
                             on_removal done) {
  auto& mine = memory_of(who);
  mine.votes.reset();
  std::string entry;
  if (mine.line) {
    stop_waiting(who, mine);
    entry = mine.line->entry(who.id);
  }
  locks_[lock].held.erase(who.id);
  if (without_.withdrawing) return done(core::removal::gone);
  const auto give_up = core::after(in_.now(), who.ttl);
  for (const auto& id : mine.unanswered) {
    const auto freed = release_call(lock, id, {}, {}, {});
    for (std::size_t i = 0; i < set_.nodes.size(); ++i)
      give_back(i, freed, give_up);
  }
  const auto asked = question(calls_);
  const auto leave = release_call(lock, who.id, entry, {}, {});
  for (std::size_t i = 0; i < set_.nodes.size(); ++i)
    asked->ask(i, leave, give_up);
  asked->gather(until, [this, done = std::move(done)](const auto& answers) {
    const auto confirmed =
        std::count_if(answers.begin(), answers.end(), [](const auto& one) { return one && *one; });
    done(static_cast<std::size_t>(confirmed) >= majority() ? core::removal::gone
                                                           : core::removal::unsure);
  });
}

bool redlock_model::leaves_line(std::size_t lock, const core::owner_id& id,
                                const std::string& entry) {
  const auto known = locks_[lock].held.find(id);
  if (known == locks_[lock].held.end()) return false;
  known->second.entry = entry;
  return true;
}

redlock_model::ours redlock_model::take_out(std::size_t lock, const core::owner_id& id) {
  auto& held = locks_[lock].held;
  const auto known = held.find(id);
  if (known == held.end()) return {everybody()};
  auto what = std::move(known->second);
  held.erase(known);
  return what;
}

void redlock_model::release(std::size_t lock, const core::owner_id& id, core::time_point until,
                            on_removal done) {
  const auto [at, token, entry] = take_out(lock, id);
  // A node that is away now must not have it when it comes back.
  const auto give_up = core::after(in_.now(), set_.max_ttl);
  const auto asked = question(calls_);
  const auto what = release_call(lock, id, entry, {}, {});
  for (std::size_t i = 0; i < set_.nodes.size(); ++i) {
    if (!has(at, i)) continue;
    if (without_.owed_release) {
      asked->ask(i, what);
    } else {
      asked->ask(i, what, give_up);
    }
  }
  asked->gather(
      until,
      [this, at = at, done = std::move(done)](const auto& answers) {
        std::size_t released = 0;
        std::size_t gone = 0;
        std::size_t taken = 0;
        for (std::size_t i = 0; i < answers.size(); ++i) {
          if (!has(at, i)) ++gone;
          if (!answers[i] || !*answers[i]) continue;
          const auto said = (*answers[i])->integer;
          ++(said > 0 ? released : said == 0 ? gone : taken);
        }
        if (released >= majority()) return done(core::removal::released);
        if (answers.size() - gone - taken < majority()) {
          return done(taken > gone ? core::removal::taken : core::removal::gone);
        }
        if (released + gone + taken >= majority()) return done(core::removal::unsure);
        done(fail(errc::outcome_unknown, "too few nodes answered the release"));
      },
      majority(), is_ours_to_release);
}

void redlock_model::release_later(std::size_t lock, const core::owner_id& id,
                                  core::time_point give_up) {
  const auto [at, token, entry] = take_out(lock, id);
  const auto what = release_call(lock, id, entry, {}, {});
  for (std::size_t i = 0; i < set_.nodes.size(); ++i) {
    if (has(at, i)) give_back(i, what, give_up);
  }
}

// ---- renewing ----------------------------------------------------------------------------------

redlock_model::call redlock_model::extend_call(const std::vector<renewing>& leases) const {
  auto script = std::make_shared<script_request>(
      script_request{scripts_.extend, {record_key}, {set_.config}, true});
  for (const auto& one : leases) {
    script->keys.push_back(quorum_keys_of(one.lock).lock);
    script->args.emplace_back(one.id.text());
    script->args.push_back(milliseconds_text(one.ttl));
  }
  return script;
}

void redlock_model::renew(const std::vector<renewing>& leases, core::time_point until,
                          on_renewals done) {
  const auto script = extend_call(leases);
  const auto counted_from = in_.now();
  const auto asked = question(renewals_);
  for (std::size_t i = 0; i < set_.nodes.size(); ++i)
    asked->ask(i, script);
  asked->gather(until, [this, leases, counted_from, done = std::move(done)](const auto& answers) {
    auto said = read_extensions(leases, answers);
    const auto from = without_.early_count ? in_.now() : counted_from;
    std::vector<stores::renewal> all;
    bool any_known = false;
    for (std::size_t l = 0; l < leases.size(); ++l) {
      all.push_back(judge(leases[l], from, said[l]));
      any_known = any_known || all.back().renewed || all.back().why != loss::none;
    }
    if (!any_known) return done(fail(errc::outcome_unknown, "too few nodes answered"));
    done(std::move(all));
  });
}

std::vector<std::vector<redlock_model::extension>> redlock_model::read_extensions(
    const std::vector<renewing>& leases, const question_model::answers& answers) {
  std::vector<std::vector<extension>> said(leases.size(), std::vector<extension>(answers.size()));
  for (std::size_t i = 0; i < answers.size(); ++i) {
    if (!answers[i] || !*answers[i]) continue;
    const auto& answer = **answers[i];
    if (asks_for_admission(answer)) look_after_nodes();
    if (read_refusal(answer) || answer.items.size() != leases.size() + 2) continue;
    for (std::size_t l = 0; l < leases.size(); ++l) {
      const auto& one = answer.items[l + 2];
      const auto holder = stores::redis::parse_holder(one.text);
      said[l][i] = one.type == reply::kind::text
                       ? extension{true, one.text, holder ? holder->token : fencing_token{}, false}
                       : extension{true, {}, {}, one.integer != 0};
    }
  }
  if (without_.own_round) {
    for (std::size_t l = 0; l < leases.size(); ++l) {
      auto& before = last_round_[leases[l].id];
      before.resize(answers.size());
      for (std::size_t i = 0; i < answers.size(); ++i) {
        if (!said[l][i].known) said[l][i] = before[i];
      }
      before = said[l];
    }
  }
  return said;
}

stores::renewal redlock_model::judge(const renewing& one, core::time_point counted_from,
                                     const std::vector<extension>& said) {
  using outcome = core::renewal_round::outcome;
  using answer = core::renewal_round::said;
  const auto known = locks_[one.lock].held.find(one.id);
  const auto token = without_.lease_token                   ? fencing_token{UINT64_MAX}
                     : known == locks_[one.lock].held.end() ? fencing_token{}
                                                            : known->second.token;
  core::renewal_round round{said.size(), token};
  std::vector<std::size_t> gone;
  for (std::size_t i = 0; i < said.size(); ++i) {
    if (!said[i].known) {
      round.on_silence(i);
    } else if (!said[i].value.empty()) {
      round.on_extended(i, said[i].token);
    } else {
      round.on_answer(i, said[i].taken ? answer::taken : answer::gone);
      if (!said[i].taken) gone.push_back(i);
    }
  }
  const auto result = round.result();
  const auto best = round.best() ? said[*round.best()] : extension{};
  const bool repairs_unsure = without_.repair_sure && !best.value.empty();
  for (const auto node : repairs_unsure ? gone : round.to_repair())
    repair(node, one, best.value);
  if (without_.one_answer && result == outcome::renewed) ask_twice(one, said, best.value);
  if (result == outcome::renewed) return {true, loss::none, one.ttl, counted_from, best.token};
  if (result == outcome::lost) {
    // What is left of it on a minority is in everybody's way.
    release_later(one.lock, one.id, core::after(in_.now(), one.ttl));
    return {false, round.why(), {}, {}, {}};
  }
  return {};
}

// Planted: nodes that have extended are asked again, and repaired if they have lost it by then.
void redlock_model::ask_twice(const renewing& one, const std::vector<extension>& said,
                              const std::string& value) {
  for (std::size_t i = 0; i < said.size(); ++i) {
    if (said[i].value.empty()) continue;
    renewals_[i]->send(extend_call({one}), [this, i, one, value](const result<reply>& answer) {
      if (!answer || read_refusal(*answer) || answer->items.size() != 3) return;
      const auto& again = answer->items[2];
      if (again.type != reply::kind::text && again.integer == 0) repair(i, one, value);
    });
  }
}

void redlock_model::repair(std::size_t node, const renewing& one, const std::string& value) {
  const auto holder = stores::redis::parse_holder(value);
  // A lock that is given back is not brought back.
  auto& held = locks_[one.lock].held;
  const auto known = held.find(one.id);
  if (!holder || (known == held.end() && !without_.fill_in_held)) return;
  if (known != held.end() && !without_.filled_release) known->second.at |= only(node);
  const auto& keys = quorum_keys_of(one.lock);
  calls_[node]->send(
      std::make_shared<script_request>(script_request{
          scripts_.repair,
          {keys.lock, record_key},
          {set_.config, keys.counter, value, milliseconds_text(one.ttl), to_string(holder->token)},
          true}),
      [this, id = one.id](const result<reply>& answer) {
        const bool lost = !answer && answer.error().code == errc::outcome_unknown;
        if (lost) lingering_.insert(id);
      });
}

// ---- what the judge asks -----------------------------------------------------------------------

// Where it lingers, a release that does as well may have put its successor in its place.
bool redlock_model::lingers(core::owner_id id) const {
  for (;;) {
    if (lingering_.contains(id)) return true;
    const auto before = follows_.find(id);
    if (before == follows_.end()) return false;
    id = before->second;
  }
}

bool redlock_model::may_arrive_late(const stores::attempt& who) const {
  const auto found = asked_.find(who.id);
  return lingers(who.id) || (found != asked_.end() && found->second > 0);
}

// A node that has lost something since does not vote: to others it is as if it still had the lock.
bool redlock_model::has_at_store(std::size_t lock, const core::owner_id& id) {
  const auto& key = quorum_keys_of(lock).lock;
  const auto having = std::count_if(set_.nodes.begin(), set_.nodes.end(), [&](node* one) {
    return one->owner_of(key) == id || one->excused();
  });
  return static_cast<std::size_t>(having) >= majority();
}

bool redlock_model::gave_back(std::size_t lock, const core::owner_id& id) const {
  return asked_.contains(id) && !holds(lock, id) && !lingers(id);
}

bool redlock_model::left_line(std::string_view entry) const {
  const auto id = core::owner_id::parse(entry.substr(0, core::owner_id::digits));
  if (!id || !asked_.contains(*id) || lingers(*id)) return false;
  // A lease that the nodes lost is not given back; it stays in line where it was.
  return std::none_of(locks_.begin(), locks_.end(),
                      [&](const auto& lock) { return lock.held.contains(*id); });
}

}  // namespace holdfast::sim
