#include "client/acquisition.hpp"

#include <utility>

#include "core/cohort.hpp"
#include "core/passing.hpp"
#include "core/planted.hpp"
#include "runtime/clock.hpp"
#include "runtime/random.hpp"
#include "stores/pause.hpp"

namespace holdfast::detail {

using core::acquire_outcome;
using cause = client_state::not_acquired::cause;

namespace {

client_state::acquired nothing(cause why, std::optional<core::busy> met = {}) {
  return client_state::acquired{tl::unexpect,
                                client_state::not_acquired{.why = why, .met = std::move(met)}};
}

}  // namespace

acquisition::acquisition(std::shared_ptr<const mutex_state> of, core::duration wait,
                         std::stop_token stop, stores::caller& by, on_done done)
    : of_{std::move(of)},
      client_{*of_->client},
      wait_{wait},
      stop_{std::move(stop), client_.stopping()},
      by_{by},
      done_{std::move(done)},
      started_{runtime::now()} {
  const auto& options = client_.options;
  rule_ = {.started = started_,
           .wait_until = core::after(started_, wait_),
           .operation_timeout = options.operation_timeout,
           .unreachable_limit = core::unreachable_limit(options),
           .release_budget = options.release_budget,
           .validity = of_->terms.rule.validity};
}

void acquisition::begin() {
  if (auto ok = client_.usable(); !ok) return finish(fail(std::move(ok.error())));
  if (stop_.requested()) return finish(nothing(cause::stopped));
  if (wait_ <= core::duration::zero() || !may_be_handed_here()) return begin_attempt();
  queue_here();
}

// ---- stopping and waiting ----------------------------------------------------------------------

// What several may hold is not handed on here: its readers would wait for each other.
bool acquisition::may_be_handed_here() const {
  return client_.options.hand_over_here && of_->lock->kind.what == core::lock_kind::form::exclusive;
}

void acquisition::wait_for(std::shared_ptr<stores::pause> what) {
  stop_.calls([what] { what->end(); });
  by_.wait_for(std::move(what));
}

void acquisition::begins_to_wait() {
  if (std::exchange(counts_as_wait_, true)) return;
  ++client_.counts.waits;
  ++client_.counts.waiting_now;
  client_.tell({.type = event::kind::waiting, .lock = of_->lock->name});
}

// ---- among those of this client ----------------------------------------------------------------

// Acquisitions of this client queue here, and one of them asks the store. One that only asks once
// does not queue, neither here nor there.
void acquisition::queue_here() {
  auto turn = of_->lock->here.enter(of_->terms, rule_.wait_until, [this](cohort::place got) {
    stop_.calls_no_more();
    in_turn_here(std::move(got));
  });
  if (!turn) return;
  begins_to_wait();
  wait_for(std::move(turn));
}

void acquisition::in_turn_here(cohort::place got) {
  switch (got.what) {
    case cohort::role::gave_up:
      if (stop_.requested()) return finish(nothing(cause::stopped));
      if (!got.met) return finish(nothing(cause::behind_our_own));
      return finish(nothing(cause::busy, std::move(got.met)));
    case cohort::role::failed:
      return finish(fail(client_.record_failure(of_->lock->name, std::move(*got.why))));
    case cohort::role::handed:
      return finish(client_state::acquired{std::move(got.lease)});
    case cohort::role::asks:
      leads_here_ = true;
      if (stop_.requested()) return finish_asking(nothing(cause::stopped));
      return begin_attempt();
  }
}

void acquisition::finish_asking(result<client_state::acquired> got) {
  if (!leads_here_) return finish(std::move(got));
  auto& here = of_->lock->here;
  if (!got && core::is_passing(got.error().code)) {
    auto why = got.error();
    // Of those who never asked, that much is known.
    if (why.code == errc::outcome_unknown) why.code = errc::store_unreachable;
    here.leave(why, rule_.unreachable_limit);
  } else if (!got || !*got) {
    here.leave();
  }
  finish(std::move(got));
}

void acquisition::finish(result<client_state::acquired> got) {
  if (got && *got) {
    const auto& lease = **got;
    client_.tell({.type = event::kind::acquired,
                  .lock = of_->lock->name,
                  .token = lease->token,
                  .duration = runtime::now() - started_});
  }
  if (std::exchange(counts_as_wait_, false)) --client_.counts.waiting_now;
  const auto done = std::move(done_);
  done(std::move(got));
}

// ---- at the store ------------------------------------------------------------------------------

void acquisition::begin_attempt() {
  const auto& terms = of_->terms;
  attempt_ = of_->lock->store->begin({.ttl = terms.rule.ttl,
                                      .label = terms.label,
                                      .may_wait = wait_ > core::duration::zero(),
                                      .claim_ttl = terms.rule.claim_ttl(),
                                      .block = core::tokens_wanted(of_->lock->here.waiting()),
                                      .units = terms.units});
  machine_.emplace(rule_, runtime::random_bits());
  perform(machine_->start(runtime::now()));
}

void acquisition::perform(step next) {
  switch (next.what) {
    case step::verb::ask:
      return ask(next.until);
    case step::verb::wait:
      return wait(next.until);
    case step::verb::pause:
      return pause(next.until);
    case step::verb::withdraw:
      return withdraw(next.until);
    case step::verb::done:
      return finish_attempt();
  }
}

void acquisition::ask(core::time_point until) {
  attempt_->ask(until, by_, [this](result<core::answer> answer) {
    if (!answer) return perform(machine_->on_failure(std::move(answer.error()), runtime::now()));
    answered(*answer);
  });
}

void acquisition::wait(core::time_point until) {
  begins_to_wait();
  of_->lock->here.on_met(machine_->met());
  stop_.calls([this, weak = weak_from_this()] {
    by_.in_turn([weak] {
      const auto self = weak.lock();
      if (self && self->attempt_) self->attempt_->wake();
    });
  });
  attempt_->wait(until, by_, [this](std::optional<core::grant> granted) {
    stop_.calls_no_more();
    if (granted) return answered(*granted);
    perform(machine_->on_woken(stop_.requested(), runtime::now()));
  });
}

void acquisition::answered(const core::answer& with) {
  auto now = runtime::now();
  const auto* granted = std::get_if<core::grant>(&with);
  if (granted != nullptr && core::planted(core::planted_bug::late_check)) {
    now = granted->counted_from;
  }
  perform(machine_->on_answer(with, now));
}

void acquisition::pause(core::time_point until) {
  wait_for(std::make_shared<stores::pause>(until, [this] {
    stop_.calls_no_more();
    perform(machine_->on_woken(stop_.requested(), runtime::now()));
  }));
}

void acquisition::withdraw(core::time_point until) {
  attempt_->withdraw(until, by_, [this](const result<core::removal>& said) {
    const bool sure = said && *said != core::removal::unsure;
    perform(machine_->on_withdrawn(sure, runtime::now()));
  });
}

void acquisition::finish_attempt() {
  switch (machine_->outcome()) {
    case acquire_outcome::granted: {
      if (machine_->met()) of_->lock->here.on_met({});
      auto lease = client_.hold(of_->lock, attempt_->id(), machine_->granted(), of_->terms,
                                wait_ > core::duration::zero() && may_be_handed_here());
      if (!lease) {
        return finish_asking(
            fail(client_.record_failure(of_->lock->name, std::move(lease.error()))));
      }
      return finish_asking(client_state::acquired{std::move(*lease)});
    }
    case acquire_outcome::late:
      if (runtime::now() < rule_.wait_until && !stop_.requested()) return begin_attempt();
      return finish_asking(nothing(stop_.requested() ? cause::stopped : cause::late));
    case acquire_outcome::busy:
      return finish_asking(nothing(cause::busy, machine_->met()));
    case acquire_outcome::stopped:
      return finish_asking(nothing(cause::stopped, machine_->met()));
    case acquire_outcome::failed:
      return finish_asking(fail(client_.record_failure(of_->lock->name, machine_->why())));
  }
}

}  // namespace holdfast::detail
