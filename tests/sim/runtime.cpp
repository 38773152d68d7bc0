// src/runtime as shipped code meets it in a simulation: time, chance and threads are those of the
// process in which something happens just now. It takes the place of the shipped clock, random,
// host, background and keeper_threads when the simulator is linked.
#include <algorithm>

#include "client/keeper_threads.hpp"
#include "runtime/background.hpp"
#include "runtime/clock.hpp"
#include "runtime/host.hpp"
#include "runtime/random.hpp"
#include "sim/process.hpp"
#include "stores/background_caller.hpp"

namespace holdfast::sim {

thread_local process* process::current_ = nullptr;

}  // namespace holdfast::sim

namespace holdfast::runtime {

using sim::process;

// ---- clock -------------------------------------------------------------------------------------

core::time_point now() noexcept {
  const auto* here = process::current();
  return here == nullptr ? core::time_point{} : here->now();
}

std::chrono::system_clock::time_point wall_now() noexcept {
  const auto* here = process::current();
  const auto us = here == nullptr ? 0 : static_cast<std::int64_t>(here->wall_us());
  return std::chrono::system_clock::time_point{std::chrono::microseconds{us}};
}

std::chrono::milliseconds wall_ms() noexcept {
  return std::chrono::floor<std::chrono::milliseconds>(wall_now().time_since_epoch());
}

// Nobody polls here.
timespec until(core::time_point when) noexcept {
  static_cast<void>(when);
  return {};
}

// ---- chance ------------------------------------------------------------------------------------

std::uint64_t random_bits() noexcept {
  auto* here = process::current();
  return here == nullptr ? 0 : here->random.bits();
}

core::owner_id fresh_owner() noexcept {
  const auto high = random_bits();
  return core::owner_id::from_bits(high, random_bits());
}

// ---- host --------------------------------------------------------------------------------------

std::string host_name() {
  const auto* here = process::current();
  return here == nullptr ? "nowhere" : here->name;
}

std::int64_t process_id() noexcept { return 1; }

// ---- threads -----------------------------------------------------------------------------------

struct background::shared {
  process* of;
  unsigned life;
  bool stopping = false;
};

background::background(std::size_t threads_max) : shared_{std::make_shared<shared>()} {
  static_cast<void>(threads_max);
  shared_->of = process::current();
  shared_->life = shared_->of == nullptr ? 0 : shared_->of->life();
  shared_->stopping = shared_->of == nullptr;
}

background::~background() { stop(); }
void background::stop() { shared_->stopping = true; }
bool background::start() { return !shared_->stopping; }

bool background::run_at(core::time_point when, task work) {
  if (shared_->stopping || shared_->of->life() != shared_->life) return false;
  shared_->of->at(when, [in = shared_, work = std::move(work)] {
    if (!in->stopping) work();
  });
  return true;
}

bool background::run(task work) {
  return !shared_->stopping && run_at(shared_->of->now(), std::move(work));
}

void background::run_always(task work) { static_cast<void>(run(std::move(work))); }

}  // namespace holdfast::runtime

namespace holdfast::stores {

void begin_in_background(runtime::background& on, std::function<void(caller&)> begin) {
  static_cast<void>(begin_in_background_at(on, runtime::now(), std::move(begin)));
}

bool begin_in_background_at(runtime::background& on, core::time_point when,
                            std::function<void(caller&)> begin) {
  return on.run_at(when, [begin = std::move(begin)] { begin(sim::process::current()->events); });
}

}  // namespace holdfast::stores

namespace holdfast::detail {

struct keeper_threads::running {
  void renew_next(const std::shared_ptr<running>& self) {
    if (renewing || stopping) return;
    renewing = true;
    const bool begun = duty.renew(of->events, [self] {
      self->renewing = false;
      self->renew_next(self);
    });
    if (!begun) renewing = false;
  }

  const duties duty;
  sim::process* const of = sim::process::current();
  bool stopping = false;
  bool renewing = false;
  unsigned alarms = 0;  // the last one counts
};

keeper_threads::keeper_threads(duties what)
    : running_{std::make_shared<running>(running{.duty = std::move(what)})} {}

keeper_threads::~keeper_threads() { running_->stopping = true; }

bool keeper_threads::start() { return true; }

void keeper_threads::set_alarm(core::time_point when) noexcept {
  running_->of->at(when, [all = running_, mine = ++running_->alarms] {
    if (mine == all->alarms && !all->stopping) all->duty.look();
  });
}

void keeper_threads::wake_renewer() noexcept {
  running_->of->at(running_->of->now(), [all = running_] { all->renew_next(all); });
}

}  // namespace holdfast::detail
