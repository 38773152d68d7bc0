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
using stores::redlock::record_key;

// As in redlock_lock.cpp.
constexpr std::string_view waiters_max = "10000";
constexpr std::string_view turn_ms = "50";
constexpr core::duration ask_again_min = milliseconds{30};
constexpr core::duration ask_again_max = milliseconds{60};

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
      admission_{in, set, calls_, scripts, without, random_.bits()},
      locks_(locks_max) {
  const auto greeted = [this](const reply& said) {
    if (admission_model::has_to_wait(said)) look_after_nodes();
  };
  const auto dropped = [this](const script_request& release) {
    if (const auto id = core::owner_id::parse(release.args[0])) linger(*id);
    if (const auto waiter = core::owner_id::parse(release.args[1].substr(0, 32))) {
      lingering_.insert(*waiter);
    }
  };
  for (auto* one : set.nodes) {
    calls_.push_back(std::make_unique<line_model>(
        net, in, *one, line_model::greeting{admission_.look_call(one->index), greeted}, dropped,
        random_.bits()));
    renewals_.push_back(std::make_unique<line_model>(net, in, *one, line_model::greeting{}, nullptr,
                                                     random_.bits()));
  }
}

redlock_model::waiting& redlock_model::memory_of(stores::blocking::attempt& who) {
  if (!who.memory) who.memory = std::make_shared<waiting>();
  return *static_cast<waiting*>(who.memory.get());
}

core::owner_id redlock_model::fresh_id() {
  const auto high = random_.bits();
  return core::owner_id::from_bits(high, random_.bits());
}

// ---- what is sent ------------------------------------------------------------------------------

redlock_model::call redlock_model::acquire_call(std::size_t lock,
                                                const stores::blocking::attempt& who,
                                                std::uint64_t proposal, const queued_waiter* waiter,
                                                bool asked_before) const {
  const auto& keys = quorum_keys_of(lock);
  return std::make_shared<script_request>(script_request{
      scripts_.acquire,
      {keys.lock, record_key, keys.queue},
      {set_.config, keys.counter, std::string{who.id.text()}, milliseconds_text(who.ttl),
       std::to_string(proposal), layout, "0", holder_, std::string{ahead_us_max},
       waiter == nullptr ? std::string{} : waiter->address,
       waiter == nullptr ? std::string{} : waiter->ticket, std::string{waiters_max},
       asked_before ? "1" : ""},
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

redlock_model::call redlock_model::leave_call(std::size_t lock, std::string_view entry) const {
  const auto& keys = quorum_keys_of(lock);
  return std::make_shared<script_request>(script_request{
      scripts_.release, {keys.lock, keys.queue}, {"", std::string{entry}, "0"}, true});
}

redlock_model::call redlock_model::release_call(std::size_t lock, const core::owner_id& id,
                                                std::string_view leaves_as, turn whose) const {
  const auto& keys = quorum_keys_of(lock);
  return std::make_shared<script_request>(
      script_request{scripts_.release,
                     {keys.lock, keys.queue},
                     {std::string{id.text()}, std::string{leaves_as},
                      whose == turn::next ? std::string{turn_ms} : "0"},
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

void redlock_model::give_back_everywhere(std::size_t lock, const core::owner_id& id,
                                         std::string_view leaves_as, turn whose,
                                         core::time_point give_up) {
  const auto what = release_call(lock, id, leaves_as, whose);
  for (std::size_t i = 0; i < set_.nodes.size(); ++i)
    give_back(i, what, give_up);
}

// ---- asking ------------------------------------------------------------------------------------

void redlock_model::begin_to_wait(waiting& mine) {
  if (mine.ticket.empty()) mine.ticket = std::to_string(in_.wall_us());
  mine.waiter = std::make_shared<queued_waiter>(fresh_id(), inbox_.inbox(), mine.ticket, holder_);
  inbox_.expect(mine.waiter->id);
}

std::string redlock_model::stop_waiting(waiting& mine) {
  const auto gone = std::exchange(mine.waiter, nullptr);
  if (!gone) return {};
  gone->done = true;
  inbox_.forget(gone->id);
  done_waiting_.insert(gone->id);
  return gone->entered ? gone->entry() : std::string{};
}

void redlock_model::ask(std::size_t lock, stores::blocking::attempt& who, core::time_point until,
                        on_answer done) {
  auto& mine = memory_of(who);
  auto& here = locks_[lock];
  if (who.may_wait && !mine.waiter) begin_to_wait(mine);
  if (who.asks++ > 0 && !without_.fresh_id) who.id = fresh_id();
  here.held[who.id] = {};
  asked_.try_emplace(who.id, 0);
  const auto proposal = core::propose(here.last_seen, in_.wall_us());
  const bool queues = mine.waiter && (mine.waiter->entered || majority_answers_);
  const bool asked_before = queues && mine.waiter->entered.exchange(true);
  if (queues) asked_for_.insert_or_assign(who.id, mine.waiter->id);
  if (mine.waiter) inbox_.asks(mine.waiter->id);
  const auto ttl = without_.elapsed ? core::duration{core::never.time_since_epoch()} : who.ttl;
  const auto votes = std::make_shared<vote_model>(
      in_, calls_, set_.node_timeout, *this,
      vote_model::attempt{lock, who.id, queues ? mine.waiter : nullptr},
      core::quorum_rule{set_.nodes.size(), ttl}, without_, set_.resends);
  mine.votes = votes;
  begun_.push_back(votes);
  votes->ask(proposal,
             acquire_call(lock, who, proposal, queues ? mine.waiter.get() : nullptr, asked_before));
  votes->wait(until, [this, lock, &who, votes = votes.get(), done = std::move(done)] {
    read_verdict(lock, who, *votes, done);
  });
}

void redlock_model::read_verdict(std::size_t lock, stores::blocking::attempt& who,
                                 vote_model& votes, const on_answer& done) {
  auto& mine = memory_of(who);
  auto& here = locks_[lock];
  const auto& machine = votes.machine();
  // It is kept only by what it has sent.
  const auto kept_alive = std::exchange(mine.votes, nullptr);
  const auto outcome = machine.outcome();
  auto got = machine.granted();
  if (without_.early_count) got.counted_from = in_.now();
  if (without_.elapsed) got.ttl = std::min(got.ttl, who.ttl);
  majority_answers_ = machine.majority_works();
  here.last_seen = std::max({here.last_seen, machine.highest_seen(), got.token.value()});
  if (outcome == quorum_outcome::granted) {
    here.held[who.id] = got.token;
    if (!stop_waiting(mine).empty()) votes.leave_queues();
    return done(core::answer{got});
  }
  votes.give_back();
  here.held.erase(who.id);
  if (outcome == quorum_outcome::busy) {
    auto met = machine.met();
    if (mine.waiter) {
      inbox_.open();
      met.queued = mine.waiter->entered;
      met.ask_within = core::between(ask_again_min, ask_again_max, random_.bits());
    }
    return done(core::answer{std::move(met)});
  }
  // That it is late is for the caller to see.
  if (outcome == quorum_outcome::late) return done(core::answer{got});
  static const std::vector<std::string> names(16, "node");
  auto why = machine.why({names.data(), set_.nodes.size()}, set_.node_timeout);
  if (why.code == errc::outcome_unknown) mine.unanswered.push_back(who.id);
  // It may not be asked again, nor withdrawn: some nodes may have it in their queue.
  if (const auto entry = stop_waiting(mine); !entry.empty()) {
    give_back_everywhere(lock, who.id, entry, turn::nobodys, core::after(in_.now(), who.ttl));
  }
  if (why.code == errc::store_loading) return done(core::answer{core::not_yet{std::move(why)}});
  done(fail(std::move(why)));
}

void redlock_model::wait(std::size_t, stores::blocking::attempt& who, core::time_point until,
                         on_woken done) {
  const auto& waiter = memory_of(who).waiter;
  inbox_.wait(waiter->id, majority(), until, std::move(done));
}

void redlock_model::wake(stores::blocking::attempt& who) {
  if (const auto& waiter = memory_of(who).waiter) inbox_.wake(waiter->id);
}

// ---- giving back -------------------------------------------------------------------------------

void redlock_model::withdraw(std::size_t lock, stores::blocking::attempt& who,
                             core::time_point until, on_removal done) {
  auto& mine = memory_of(who);
  mine.votes.reset();
  const auto entry = stop_waiting(mine);
  locks_[lock].held.erase(who.id);
  if (without_.withdrawing) return done(core::removal::gone);
  const auto give_up = core::after(in_.now(), who.ttl);
  for (const auto& id : mine.unanswered)
    give_back_everywhere(lock, id, {}, turn::nobodys, give_up);
  const auto asked = question(calls_);
  const auto leave = release_call(lock, who.id, entry, turn::nobodys);
  for (std::size_t i = 0; i < set_.nodes.size(); ++i)
    asked->ask(i, leave, give_up);
  asked->gather(until, [this, done = std::move(done)](const auto& answers) {
    const auto confirmed =
        std::count_if(answers.begin(), answers.end(), [](const auto& one) { return one && *one; });
    done(static_cast<std::size_t>(confirmed) >= majority() ? core::removal::gone
                                                           : core::removal::unsure);
  });
}

void redlock_model::release(std::size_t lock, const core::owner_id& id, core::time_point until,
                            on_removal done) {
  locks_[lock].held.erase(id);
  // A node that is away now must not have it when it comes back.
  const auto give_up = core::after(in_.now(), set_.max_ttl);
  const auto asked = question(calls_);
  const auto what = release_call(lock, id, {}, turn::next);
  for (std::size_t i = 0; i < set_.nodes.size(); ++i) {
    if (without_.owed_release) {
      asked->ask(i, what);
    } else {
      asked->ask(i, what, give_up);
    }
  }
  asked->gather(
      until,
      [this, done = std::move(done)](const auto& answers) {
        std::size_t released = 0;
        std::size_t gone = 0;
        std::size_t taken = 0;
        for (const auto& answer : answers) {
          if (!answer || !*answer) continue;
          const auto said = (*answer)->integer;
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
  locks_[lock].held.erase(id);
  give_back_everywhere(lock, id, {}, turn::next, give_up);
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
                                                            : known->second;
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
  if (!holder || !holds(one.lock, one.id)) return;
  const auto& keys = quorum_keys_of(one.lock);
  calls_[node]->send(
      std::make_shared<script_request>(script_request{
          scripts_.repair,
          {keys.lock, record_key},
          {set_.config, keys.counter, value, milliseconds_text(one.ttl), to_string(holder->token)},
          true}),
      [this, id = one.id](const result<reply>& answer) {
        const bool lost = !answer && answer.error().code == errc::outcome_unknown;
        if (lost) linger(id);
      });
}

// ---- what the judge asks -----------------------------------------------------------------------

bool redlock_model::may_arrive_late(const stores::blocking::attempt& who) const {
  const auto found = asked_.find(who.id);
  return lingering_.contains(who.id) || (found != asked_.end() && found->second > 0);
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
  return asked_.contains(id) && !holds(lock, id) && !lingering_.contains(id);
}

bool redlock_model::left_line(std::string_view entry) const {
  const auto waiter = core::owner_id::parse(entry.substr(0, core::owner_id::digits));
  return waiter && done_waiting_.contains(*waiter) && !lingering_.contains(*waiter);
}

}  // namespace holdfast::sim
