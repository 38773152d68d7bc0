#include "sim/worker.hpp"

#include <algorithm>

namespace holdfast::sim {

namespace {

core::duration span(instant value) { return core::duration{value}; }

// Longer than any wait in a world that works.
constexpr core::duration patience = std::chrono::seconds{60};
// Work that takes renewals is as long as a TTL, or this.
constexpr instant long_work = second / 2;

std::string units_shown(std::uint32_t units) {
  return units == core::whole ? "" : ", " + std::to_string(units) + " of it";
}

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
  on_lost_.reset();
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

std::uint32_t worker::wanted() {
  if (!core::is_shared(in_.the.of)) return core::whole;
  if (in_.the.of.what == core::lock_kind::form::shared) {
    return random_.chance(350) ? core::whole : 1;
  }
  return static_cast<std::uint32_t>(random_.between(1, in_.the.of.permits));
}

void worker::begin() {
  acquisition what{};
  what.lock = random_.below(in_.the.locks);
  what.began_in_calm = in_.is_calm();
  what.above = in_.judge.begins(what.lock);
  core::duration wait = patience;
  if (random_.chance(60)) wait = core::duration::zero();
  if (random_.chance(in_.the.impatient)) wait = span(random_.spread(millisecond, second));
  const bool waits_for_long = wait == patience;
  const bool stops = waits_for_long && random_.chance(in_.the.impatient / 2);
  what.patient = waits_for_long && !stops;
  changes_its_mind_.emplace();
  if (stops) {
    of_.at(of_.now() + span(random_.spread(100 * microsecond, second)),
           [how = *changes_its_mind_]() mutable { how.request_stop(); });
  }
  what.units = wanted();
  if (traced()) say("wants lock" + std::to_string(what.lock) + units_shown(what.units));
  in_.client_of(process_).acquire(
      what.lock, what.units, wait, changes_its_mind_->get_token(),
      in_.unless_over([this, what](client::acquired got, const std::string& why) {
        finish(what, std::move(got), why);
      }));
}

void worker::finish(const acquisition& what, client::acquired got, const std::string& why) {
  if (got) return hold(what, std::move(got));
  if (traced()) say("did not get lock" + std::to_string(what.lock) + ": " + why);
  if (what.began_in_calm && what.patient) {
    in_.judge.broken("liveness", name_ + " was not served, though nothing went wrong any more");
  }
  think();
}

void worker::hold(const acquisition& what, client::acquired got) {
  const auto units = what.units == core::whole ? core::capacity_of(in_.the.of) : what.units;
  auto& mine = in_.keep({what.lock, std::move(got), &of_, of_.life(), units});
  held_ = &mine;
  --left_;
  if (traced()) {
    say("holds lock" + std::to_string(what.lock) + " as " + brief(mine.id().text()) + ", token " +
        std::to_string(mine.token()));
  }
  in_.judge.granted(mine, what.above, in_.client_of(process_).has_at_store(what.lock, mine.id()));
  // In a turn of its own: it may be lost already.
  on_lost_.emplace(mine.state->lost(),
                   [this, &mine] { of_.at(of_.now(), [this, &mine] { lost(mine); }); });
  work(mine);
}

// Mostly short; sometimes it takes renewals.
void worker::work(lease& mine) {
  const auto ttl = std::min(in_.rule.ttl.count(), long_work);
  auto takes = random_.spread(50 * microsecond, 8 * millisecond);
  if (random_.chance(150)) takes = random_.spread(5 * millisecond, 80 * millisecond);
  if (random_.chance(in_.the.long_work)) {
    takes = random_.spread(ttl / 4, 2 * ttl);
    // Users may renew by hand as well.
    if (random_.chance(100)) of_.at(of_.now() + span(takes / 2), [this, &mine] { renew(mine); });
  }
  const bool writes = in_.the.of.what == core::lock_kind::form::shared && mine.units > 1;
  if (writes && random_.chance(300)) {
    of_.at(of_.now() + span(takes / 2), [this, &mine] { downgrade(mine); });
  }
  of_.at(of_.now() + span(takes), [this, &mine] { give_back(mine); });
}

void worker::renew(lease& mine) {
  if (held_ != &mine) return;
  mine.state->renew(of_.events, [](const auto& said) { static_cast<void>(said); });
}

// From here on it only reads, whatever becomes of the call.
void worker::downgrade(lease& mine) {
  if (held_ != &mine) return;
  if (traced()) say("reads from now on as " + brief(mine.id().text()));
  mine.units = 1;
  mine.state->downgrade(of_.events, [](const auto& said) { static_cast<void>(said); });
}

void worker::let_go(lease& mine) {
  held_ = nullptr;
  on_lost_.reset();
  in_.judge.ended(mine);
}

void worker::give_back(lease& mine) {
  if (held_ != &mine) return;  // lost() went on from there
  let_go(mine);
  if (traced()) say("gives back " + brief(mine.id().text()));
  if (random_.chance(300)) {
    mine.state->abandon();
    return think();
  }
  mine.state->release(of_.events, in_.unless_over([this](const auto& said) {
    static_cast<void>(said);
    think();
  }));
}

// The user stops, and drops its handle.
void worker::lost(lease& mine) {
  if (held_ != &mine) return;
  if (traced()) {
    say("lost " + brief(mine.id().text()) + ": " + std::string{to_string(mine.state->why_lost())});
  }
  let_go(mine);
  mine.state->abandon();
  think();
}

}  // namespace holdfast::sim
