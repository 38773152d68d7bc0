#include "sim/worker.hpp"

#include <algorithm>

namespace holdfast::sim {

namespace {

core::duration span(instant value) { return core::duration{value}; }

// Longer than any wait in a world that works.
constexpr core::duration patience = std::chrono::seconds{60};
// Work that takes renewals is as long as a TTL, or this.
constexpr instant long_work = second / 2;

}  // namespace

worker::worker(world& in, process& of, std::size_t process_index, std::string name,
               std::uint64_t seed)
    : in_{in},
      of_{of},
      process_{process_index},
      name_{std::move(name)},
      random_{seed, 21},
      left_{in.the.acquisitions} {}

void worker::start() {
  held_ = nullptr;
  if (!done_) think();
}

void worker::think() {
  if (left_ == 0) {
    done_ = true;
    return in_.worker_done();
  }
  of_.at(of_.now() + span(random_.spread(10 * microsecond, in_.the.think_most)),
         [this] { begin(); });
}

void worker::begin() {
  auto what = std::make_shared<acquisition>();
  what->lock =
      static_cast<std::size_t>(random_.between(0, static_cast<std::int64_t>(in_.the.locks) - 1));
  what->started = of_.now();
  what->began_in_calm = in_.is_calm();
  what->above = in_.judge.begins(what->lock);
  core::duration wait = patience;
  if (random_.chance(60)) wait = core::duration::zero();
  if (random_.chance(in_.the.impatient)) wait = span(random_.spread(millisecond, second));
  what->patient = wait == patience;
  what->wait_until = what->started + wait;
  attempt(what);
  if (!what->patient || !random_.chance(in_.the.impatient / 2)) return;
  // The user changes its mind.
  what->patient = false;
  of_.at(of_.now() + span(random_.spread(100 * microsecond, second)), [this, what] {
    what->stopped = true;
    what->who->wake();
  });
}

void worker::attempt(const current& what) {
  what->who = in_.client_of(process_)
                  .lock(what->lock)
                  .begin({.ttl = in_.rule.ttl,
                          .label = {},
                          .may_wait = what->wait_until > what->started,
                          .claim_ttl = in_.rule.claim_ttl(),
                          .block = random_.chance(200) ? 64U : 1U});
  what->withdrawn_surely = true;
  const core::acquire_rule rule{what->started,
                                what->wait_until,
                                in_.the.operation_timeout,
                                in_.the.unreachable_limit,
                                in_.the.release_budget,
                                in_.rule.validity};
  what->machine = std::make_unique<core::acquire_machine>(rule, random_.bits());
  if (traced()) {
    say("wants lock" + std::to_string(what->lock) + " as " + brief(what->who->id().text()));
  }
  go_on(what, what->machine->start(of_.now()));
}

void worker::go_on(const current& what, core::acquire_step step) {
  using verb = core::acquire_step::verb;
  auto& machine = *what->machine;
  auto& who = *what->who;
  switch (step.what) {
    case verb::ask:
      return who.ask(step.until, of_.events, in_.unless_over([this, what, &machine](auto answer) {
        if (!answer) {
          if (traced()) say(brief(what->who->id().text()) + ": " + answer.error().message);
          return go_on(what, machine.on_failure(std::move(answer.error()), of_.now()));
        }
        answered(what, *answer);
      }));
    case verb::wait:
      return who.wait(step.until, of_.events, in_.unless_over([this, what](auto granted) {
        if (granted) return answered(what, *granted);
        go_on(what, what->machine->on_woken(what->stopped, of_.now()));
      }));
    case verb::pause:
      return of_.at(step.until, [this, what, &machine] {
        go_on(what, machine.on_woken(what->stopped, of_.now()));
      });
    case verb::withdraw:
      return who.withdraw(step.until, of_.events,
                          in_.unless_over([this, what, &machine](auto said) {
                            const bool sure = said && *said != core::removal::unsure;
                            what->withdrawn_surely = sure;
                            go_on(what, machine.on_withdrawn(sure, of_.now()));
                          }));
    case verb::done:
      return finish(what);
  }
}

void worker::answered(const current& what, const core::answer& answer) {
  auto now = of_.now();
  const auto* granted = std::get_if<core::grant>(&answer);
  if (granted != nullptr && in_.without.late_check) now = granted->counted_from;
  go_on(what, what->machine->on_answer(answer, now));
}

void worker::finish(const current& what) {
  using core::acquire_outcome;
  const auto outcome = what->machine->outcome();
  if (outcome == acquire_outcome::granted) return hold(what);
  const auto id = what->who->id();
  if (what->withdrawn_surely && in_.client_of(process_).withdrawn_for_good(what->who->id())) {
    in_.judge.over(id);
  }
  if (traced()) {
    const std::string how = outcome == acquire_outcome::busy      ? "busy"
                            : outcome == acquire_outcome::late    ? "granted too late"
                            : outcome == acquire_outcome::stopped ? "stopped"
                                                                  : what->machine->why().message;
    say(brief(id.text()) + " did not get it: " + how);
  }
  if (outcome == acquire_outcome::late && of_.now() < what->wait_until && !what->stopped) {
    return attempt(what);
  }
  if (what->began_in_calm && what->patient) {
    in_.judge.broken("liveness", name_ + " was not served, though nothing went wrong any more");
  }
  think();
}

void worker::hold(const current& what) {
  auto& mine = in_.keep(
      std::make_unique<lease>(lease{what->lock, what->who->id(), what->machine->granted(),
                                    core::lease_machine{in_.rule, what->machine->granted(),
                                                        what->machine->granted().counted_from},
                                    &of_, of_.life()}));
  held_ = &mine;
  --left_;
  if (traced()) {
    say("holds lock" + std::to_string(what->lock) + " as " + brief(what->who->id().text()) +
        ", token " + std::to_string(mine.granted.token.value()));
  }
  in_.judge.granted(mine, what->above,
                    in_.client_of(process_).has_at_store(what->lock, what->who->id()));
  in_.keeper_of(process_).watch(mine);

  // Mostly short; sometimes it takes renewals.
  const auto ttl = std::min(in_.rule.ttl.count(), long_work);
  auto work = random_.spread(50 * microsecond, 8 * millisecond);
  if (random_.chance(150)) work = random_.spread(5 * millisecond, 80 * millisecond);
  if (random_.chance(in_.the.long_work)) work = random_.spread(ttl / 4, 2 * ttl);
  of_.at(of_.now() + span(work), [this, what, &mine] { give_back(what, mine); });
}

void worker::give_back(const current& what, lease& mine) {
  const auto now = of_.now();
  const auto noticed = mine.machine.tick(now);
  if (noticed != loss::none) return lost(mine, noticed, false);
  if (!mine.machine.end()) return;  // lost() went on from there
  held_ = nullptr;
  in_.judge.ended(mine);
  auto& client = in_.client_of(process_);
  const auto budget = core::after(now, in_.the.release_budget);
  if (traced()) say("gives back " + brief(mine.id.text()));
  if (random_.chance(300)) {
    client.lock(mine.lock).release_later(mine.id, budget);
    return think();
  }
  const auto until = core::after(now, in_.the.operation_timeout);
  // What is unanswered now may arrive after the release, and wait or hold as a ghost for a while.
  const bool ghost = client.may_arrive_late(what->who->id());
  client.lock(mine.lock).release(mine.id, until, of_.events,
                                 in_.unless_over([this, &mine, &client, budget, ghost](auto said) {
                                   if (!said) {
                                     client.lock(mine.lock).release_later(mine.id, budget);
                                   } else if (*said == core::removal::released && !ghost) {
                                     in_.judge.over(mine.id);
                                   }
                                   think();
                                 }));
}

// Told by the keeper, or noticed at the end of the work: the user stops, and gives back what the
// store may still have.
void worker::lost(lease& which, loss why, bool too_early) {
  if (too_early) in_.judge.refused(which, why);
  if (traced()) say("lost " + brief(which.id.text()) + ": " + std::string{to_string(why)});
  held_ = nullptr;
  in_.judge.ended(which);
  if (why == loss::expired) {
    in_.client_of(process_)
        .lock(which.lock)
        .release_later(which.id, core::after(of_.now(), in_.the.release_budget));
  }
  think();
}

}  // namespace holdfast::sim
