// What goes wrong at just the moment when it matters most. Random faults seldom hit a chain of rare
// events; these watch what the nodes answer, and strike when the next link of the chain is there.
//
//   vote_forgotten      X votes for an attempt of P, and forgets it at once. Of the others only the
//                       witnesses, who complete the majority, hear from P, perhaps only when X
//                       has been seen to forget. When X has waited and somebody looks whether it
//                       may vote again, the witnesses fall silent.
//   admission_outdated  X forgets. When it has waited, somebody asks for the counters that it is to
//                       have, but what it sends to X is held up. Another lets X vote; it votes,
//                       beside witnesses who just complete the majority, and forgets that, without
//                       a new start. Once that is seen, the witnesses fall silent, and X is let in
//                       by the first.
//   renewal_interrupted  Of three nodes one never hears of a lease. Of the other two, n0 loses the
//                       lock while it is renewed. Once a rival has its vote, it loses that, too.
//   repair_overtaken    P renews, and X has lost the lock. The repair is held up. Another node
//                       loses the lock, a rival is granted it there and on X, and gives it back.
//                       Then the repair gets to X.
//   ask_overtaken       P is granted the lock while its ask to X is held up; then the same happens.
//                       Mostly P's clock is so far ahead that the others did not believe its
//                       proposal, and X does when it gets there.
//   answer_lost         P does not hear that a vote was stale, and asks again.
#include <algorithm>

#include "core/quorum_machine.hpp"
#include "redlock_scripts.hpp"
#include "sim/world.hpp"
#include "stores/redis/script_values.hpp"
#include "stores/redlock/node_set.hpp"

namespace holdfast::sim {

namespace {

// How soon a node that forgets is there again.
constexpr instant back_soon = 3 * millisecond;
// How long witnesses do not hear of an attempt after that.
constexpr instant heard_late = 20 * millisecond;

// How far beyond what is believed a clock is: longer than an ask takes to get to a node, shorter
// than it is held up.
constexpr instant hardly_unbelieved_least = 20 * millisecond;
constexpr instant hardly_unbelieved_most = 80 * millisecond;

bool grants(const reply& said) {
  return !said.items.empty() && (said.items[0].integer == 1 || said.items[0].integer == 2);
}
// In these worlds a client renews one lease at a time.
bool is_extended(const reply& said) {
  return said.items.size() == 3 && said.items[2].type == reply::kind::text;
}
bool is_gone(const reply& said) {
  return said.items.size() == 3 && said.items[2].type == reply::kind::integer &&
         said.items[2].integer == 0;
}
bool is_fresh_vote(const reply& said) { return !said.items.empty() && said.items[0].integer == 1; }

}  // namespace

void world::lie_in_wait(fault what) {
  if (ambush_.awaits != ambush::stage::none && time.now() < ambush_.over_at) return;
  using stage = ambush::stage;
  ambush_ = {.awaits = what == fault::repair_overtaken ? stage::for_lease
                       : what == fault::answer_lost    ? stage::for_stale_vote
                                                       : stage::for_vote,
             .how = what,
             .over_at = time.now() + 6 * the.max_ttl.count()};
  if (what == fault::ask_overtaken) hold_up_an_ask();
}

// The node whose clock is ahead of the others' believes first.
void world::hold_up_an_ask() {
  auto& asks = random_.one_of(hosts_);
  std::vector<node*> all;
  for (const auto& one : nodes_)
    all.push_back(one.get());
  std::sort(all.begin(), all.end(), [](node* a, node* b) { return a->wall_us() > b->wall_us(); });
  ambush_.awaits = ambush::stage::for_grant;
  ambush_.forgets = all[0];
  ambush_.victim = asks.of.get();
  if (random_.chance(700)) {
    const auto believed = stores::redis::read_number(stores::redlock::ahead_us_max);
    const auto ahead = static_cast<std::int64_t>(believed) * microsecond +
                       random_.between(hardly_unbelieved_least, hardly_unbelieved_most);
    const auto behind = all[1]->wall_us() - static_cast<std::int64_t>(asks.of->wall_us());
    set_wall(asks, asks.wall_off + behind * microsecond + ahead);
  }
  hold_up(*asks.of, {all[0]});
}

void world::spring(node& at, process& from, const script_request& what, const reply& said) {
  using stage = ambush::stage;
  if (ambush_.awaits == stage::none || time.now() >= the.faults_end) return;
  namespace scripts = stores::redlock::scripts;
  // Where counters are ahead of clocks, only a raise moves them.
  const bool voted =
      (what.which == &scripts::acquire || what.which == &scripts::raise) && is_fresh_vote(said);
  const bool looked_at = what.which == &scripts::standing;
  switch (ambush_.awaits) {
    case stage::none:
      return;
    case stage::for_vote:
      if (voted) spring_on_vote(at, from);
      return;
    case stage::for_wait:
      if (&at != ambush_.forgets || !looked_at || !has_to_wait(said)) return;
      ambush_.awaits = stage::for_survey;
      time.at(soon(heard_late), [this] { net_.let_go(); });
      ambush_.wait_over = time.now() + the.max_ttl.count();
      if (the.slow_boots > 0 && random_.chance(400)) {
        time.at(soon(heard_late), [this, &at] { step_clock(at, the.max_ttl.count()); });
      }
      return;
    case stage::for_survey:
      if (time.now() < ambush_.wait_over) return;
      if (ambush_.how == fault::vote_forgotten && looked_at) fall_silent(at);
      if (ambush_.how == fault::admission_outdated && looked_at && what.args[4] == "counters") {
        ambush_.awaits = stage::for_admission;
        hold_up(from, {ambush_.forgets});
      }
      return;
    case stage::for_admission:
      if (&at == ambush_.forgets && what.which == &scripts::admit) {
        ambush_.awaits = stage::for_second_vote;
      }
      return;
    case stage::for_second_vote:
      if (&at != ambush_.forgets || !voted) return;
      ambush_.awaits = stage::for_late_admission;
      be_heard_by_few(from, at);
      time.at(soon(back_soon), [this, &at] { empty(at); });
      return;
    case stage::for_late_admission:
      if (&at != ambush_.forgets || !looked_at || !has_to_wait(said)) return;
      net_.let_go();
      for (const auto witnesses = ambush_.witnesses; auto* one : witnesses)
        fall_silent(*one);
      return;
    case stage::for_renewal:
      if (what.which != &scripts::extend || &from != ambush_.victim) return;
      ambush_.awaits = stage::for_rival;
      return drop_lock(*ambush_.forgets);
    case stage::for_lease:
      if (what.which != &scripts::extend || !is_extended(said) || !all_vote()) return;
      ambush_.awaits = stage::for_gap;
      ambush_.victim = &from;
      ambush_.forgets = nodes_[(at.index + 1) % nodes_.size()].get();
      return drop_lock(*ambush_.forgets);
    case stage::for_gap:
      if (what.which != &scripts::extend || &from != ambush_.victim || !is_gone(said)) return;
      ambush_.awaits = stage::for_loss;
      return hold_up(from, {&at});
    case stage::for_grant:
      if (&from != ambush_.victim || !grants(said)) return;
      if (what.which != &scripts::acquire && what.which != &scripts::raise) return;
      ambush_.awaits = stage::for_loss;
      return;
    case stage::for_loss:
      if (what.which != &scripts::extend || &from != ambush_.victim || !is_extended(said)) return;
      ambush_.awaits = stage::for_departure;
      return drop_lock(at);
    case stage::for_departure:
      if (&at != ambush_.forgets || what.which != &scripts::release || said.integer != 1) return;
      ambush_.awaits = stage::none;
      return net_.let_go();
    case stage::for_stale_vote:
      if (what.which != &scripts::acquire || !grants(said) || voted) return;
      if (random_.chance(700)) net_.repeat();
      return;
    case stage::for_rival:
      if (&at != ambush_.forgets || !voted || &from == ambush_.victim) return;
      ambush_.awaits = stage::none;
      time.at(soon(20 * millisecond), [this, &at] { drop_lock(at); });
      return;
  }
}

// Nothing gets there until then, and nothing of what was sent meanwhile.
void world::separate(const process& from, const node& to, instant until) {
  net_.cut_all(from, to);
  net_.block(from, to, direction::to_node, until);
  time.at(until - 1, [this, &from, &to] { net_.cut_all(from, to); });
  lasts(until);
}

// Otherwise a majority may forget, and a person has to decide.
bool world::all_vote() const {
  return std::all_of(nodes_.begin(), nodes_.end(),
                     [](const auto& one) { return one->up() && votes(*one); });
}

void world::spring_on_vote(node& voter, process& from) {
  if (!all_vote()) return;
  if (ambush_.how == fault::renewal_interrupted) {
    ambush_.awaits = ambush::stage::for_renewal;
    ambush_.forgets = nodes_[0].get();
    ambush_.victim = &from;
    const bool other_heard = voter.index == 2 || (voter.index == 0 && random_.chance(500));
    return separate(from, *nodes_[other_heard ? 1 : 2], ambush_.over_at);
  }
  ambush_.awaits = ambush::stage::for_wait;
  ambush_.forgets = &voter;
  if (ambush_.how == fault::vote_forgotten) {
    be_heard_by_few(from, voter);
    if (random_.chance(500)) hold_up(from, ambush_.witnesses);
  }
  // Not before it has said so.
  time.at(soon(back_soon), [this, &voter] {
    if (all_vote()) crash(voter, fault::node_empty, soon(back_soon));
  });
}

void world::be_heard_by_few(const process& from, node& voter) {
  std::vector<node*> others;
  for (const auto& one : nodes_) {
    if (one.get() != &voter) others.push_back(one.get());
  }
  const auto first = static_cast<std::ptrdiff_t>(random_.below(others.size()));
  std::rotate(others.begin(), others.begin() + first, others.end());
  const auto witnesses = core::majority_of(nodes_.size()) - 1;
  ambush_.witnesses.assign(others.begin(), others.begin() + static_cast<std::ptrdiff_t>(witnesses));
  for (std::size_t i = witnesses; i < others.size(); ++i)
    separate(from, *others[i], time.now() + the.max_ttl.count());
}

void world::empty(node& which) {
  if (!all_vote()) return;
  forget(which, fault::node_empty);
  look_at_locks(which);
}

void world::fall_silent(node& at) {
  const auto witness = std::find(ambush_.witnesses.begin(), ambush_.witnesses.end(), &at);
  if (witness == ambush_.witnesses.end()) return;
  ambush_.witnesses.erase(witness);
  if (ambush_.witnesses.empty()) ambush_.awaits = ambush::stage::none;
  const auto until = time.now() + 3 * the.max_ttl.count();
  for (const auto& one : hosts_)
    net_.block(*one.of, at, direction::to_node, until);
  lasts(until);
}

void world::hold_up(const process& from, std::vector<node*> to) {
  const auto until = time.now() + 5 * the.max_ttl.count();
  net_.hold(from, std::move(to));
  time.at(until, [this] { net_.let_go(); });
  lasts(until);
}

}  // namespace holdfast::sim
