// Runs the acquire machine on a store.
#include <utility>

#include "client/client_state.hpp"
#include "core/passing.hpp"
#include "runtime/clock.hpp"
#include "runtime/random.hpp"
#include "runtime/sleep.hpp"

namespace holdfast::detail {

// Counts one acquisition that has to wait, while it does.
class waiting_tally {
 public:
  explicit waiting_tally(atomic_counters& counts) : counts_{counts} {}
  waiting_tally(const waiting_tally&) = delete;
  waiting_tally& operator=(const waiting_tally&) = delete;
  ~waiting_tally() {
    if (counted_) --counts_.waiting_now;
  }
  // True the first time.
  bool count() {
    if (std::exchange(counted_, true)) return false;
    ++counts_.waits;
    ++counts_.waiting_now;
    return true;
  }

 private:
  atomic_counters& counts_;
  bool counted_ = false;
};

namespace {

using core::acquire_outcome;
using core::acquire_step;
using cause = client_state::not_acquired::cause;

// Stops when the caller or the client does.
class either_stop {
 public:
  either_stop(const std::stop_token& caller, const std::stop_token& client)
      : on_caller_{caller, [this] { both_.request_stop(); }}, on_client_{client, [this] {
                                                                           both_.request_stop();
                                                                         }} {}
  [[nodiscard]] std::stop_token token() const noexcept { return both_.get_token(); }

 private:
  std::stop_source both_;
  std::stop_callback<std::function<void()>> on_caller_;
  std::stop_callback<std::function<void()>> on_client_;
};

event acquired_event(const lease_state& lease, core::time_point started) {
  return {.type = event::kind::acquired,
          .lock = lease.lock->name,
          .token = lease.token,
          .duration = runtime::now() - started};
}

}  // namespace

// Threads of this client queue here, and one of them asks the store; who only asks once does not
// queue, neither here nor there.
result<client_state::acquired> client_state::acquire(const std::shared_ptr<lock_state>& lock,
                                                     const lock_terms& terms, core::duration wait,
                                                     const std::stop_token& stop) {
  if (auto ok = usable(); !ok) return fail(std::move(ok.error()));
  const auto started = runtime::now();
  if (wait <= core::duration::zero() || !options.hand_over_here) {
    waiting_tally tally{counts};
    return ask_store(lock, terms, started, wait, stop, tally);
  }
  const auto client_stop = stop_.get_token();
  const auto stopped = [&] { return stop.stop_requested() || client_stop.stop_requested(); };
  if (stopped()) return acquired{tl::unexpect, not_acquired{cause::stopped, {}}};
  waiting_tally tally{counts};
  auto mine = lock->here.enter(terms, core::after(started, wait), stop, [&] {
    if (tally.count()) tell({.type = event::kind::waiting, .lock = lock->name});
  });
  switch (mine.what) {
    case cohort::role::gave_up:
      if (stopped()) return acquired{tl::unexpect, not_acquired{cause::stopped, {}}};
      if (!mine.met) return acquired{tl::unexpect, not_acquired{cause::behind_our_own, {}}};
      return acquired{tl::unexpect, not_acquired{cause::busy, std::move(mine.met)}};
    case cohort::role::failed:
      return fail(record_failure(lock->name, std::move(*mine.why)));
    case cohort::role::handed:
      tell(acquired_event(*mine.lease, started));
      return acquired{std::move(mine.lease)};
    case cohort::role::asks:
      break;
  }
  auto got = ask_store(lock, terms, started, wait, stop, tally);
  if (!got && core::is_passing(got.error().code)) {
    auto why = got.error();
    // Of those who never asked, that much is known.
    if (why.code == errc::outcome_unknown) why.code = errc::store_unreachable;
    lock->here.leave(why, core::unreachable_limit(options));
  } else if (!got || !*got) {
    lock->here.leave();
  }
  return got;
}

result<client_state::acquired> client_state::ask_store(
    const std::shared_ptr<lock_state>& lock, const lock_terms& terms, core::time_point started,
    core::duration wait, const std::stop_token& stop, waiting_tally& tally) {
  const auto client_stop = stop_.get_token();
  const auto stopped = [&] { return stop.stop_requested() || client_stop.stop_requested(); };
  core::acquire_rule rule;
  rule.started = started;
  rule.wait_until = core::after(started, wait);
  rule.operation_timeout = options.operation_timeout;
  rule.unreachable_limit = core::unreachable_limit(options);
  rule.release_budget = options.release_budget;
  rule.validity = terms.rule.validity;

  std::optional<either_stop> stops;  // made when there is something to wait for
  const auto pausing = [&]() -> const std::optional<either_stop>& {
    if (!stops) stops.emplace(stop, client_stop);
    return stops;
  };
  if (stopped()) return acquired{tl::unexpect, not_acquired{cause::stopped, {}}};

  const auto wait_for_turn = [&](stores::attempt& who, core::acquire_machine& machine,
                                 core::time_point until) {
    const std::stop_callback wake{pausing()->token(), [&who] { who.wake(); }};
    const auto got = stores::wait_here<std::optional<core::grant>>(
        [&](auto& by, auto done) { who.wait(until, by, std::move(done)); });
    const auto now = runtime::now();
    return got ? machine.on_answer(*got, now) : machine.on_woken(stopped(), now);
  };
  for (;;) {
    const auto who = lock->store->begin({.ttl = terms.rule.ttl,
                                         .label = terms.label,
                                         .may_wait = wait > core::duration::zero(),
                                         .claim_ttl = terms.rule.claim_ttl(),
                                         .block = core::tokens_wanted(lock->here.waiting())});
    core::acquire_machine machine{rule, runtime::random_bits()};
    auto step = machine.start(runtime::now());
    while (step.what != acquire_step::verb::done) {
      switch (step.what) {
        case acquire_step::verb::ask: {
          auto answer = stores::wait_here<result<core::answer>>(
              [&](auto& by, auto done) { who->ask(step.until, by, std::move(done)); });
          step = answer ? machine.on_answer(*answer, runtime::now())
                        : machine.on_failure(std::move(answer.error()), runtime::now());
          break;
        }
        case acquire_step::verb::wait:
          if (tally.count()) tell({.type = event::kind::waiting, .lock = lock->name});
          lock->here.on_met(machine.met());
          step = wait_for_turn(*who, machine, step.until);
          break;
        case acquire_step::verb::pause:
          runtime::sleep_until(step.until, pausing()->token());
          step = machine.on_woken(stopped(), runtime::now());
          break;
        case acquire_step::verb::withdraw: {
          const auto said = stores::wait_here<result<core::removal>>(
              [&](auto& by, auto done) { who->withdraw(step.until, by, std::move(done)); });
          const bool sure = said && *said != core::removal::unsure;
          step = machine.on_withdrawn(sure, runtime::now());
          break;
        }
        case acquire_step::verb::done:
          break;
      }
    }
    switch (machine.outcome()) {
      case acquire_outcome::granted: {
        if (machine.met()) lock->here.on_met({});
        auto lease = hold(lock, who->id(), machine.granted(), terms, wait > core::duration::zero());
        if (!lease) return fail(record_failure(lock->name, std::move(lease.error())));
        tell(acquired_event(**lease, started));
        return acquired{std::move(*lease)};
      }
      case acquire_outcome::late:
        if (runtime::now() < rule.wait_until && !stopped()) continue;
        return acquired{tl::unexpect, not_acquired{stopped() ? cause::stopped : cause::late, {}}};
      case acquire_outcome::busy:
        return acquired{tl::unexpect, not_acquired{cause::busy, machine.met()}};
      case acquire_outcome::stopped:
        return acquired{tl::unexpect, not_acquired{cause::stopped, machine.met()}};
      case acquire_outcome::failed:
        return fail(record_failure(lock->name, machine.why()));
    }
  }
}

result<std::shared_ptr<lease_state>> client_state::hold(const std::shared_ptr<lock_state>& lock,
                                                        const core::owner_id& id,
                                                        const core::grant& granted,
                                                        const lock_terms& terms, bool for_cohort) {
  std::optional<core::cohort_turn> turn;
  if (for_cohort && options.hand_over_here) turn.emplace(granted, runtime::now());
  auto lease = std::make_shared<lease_state>(shared_from_this(), lock, id, granted, terms,
                                             granted.counted_from, turn);
  ++counts.held_now;
  auto watched = losses_.start()
                     ? keeper_.watch(*lease)
                     : fail(errc::overloaded, "no thread could be started to tell of a loss");
  if (!watched) {
    --counts.held_now;
    lock->store->release_later(id, core::after(runtime::now(), options.release_budget));
    return fail(std::move(watched.error()));
  }
  ++counts.acquisitions;
  return lease;
}

bool client_state::pass_on(lease_state& from, const core::lease_machine& machine,
                           core::cohort_turn turn) {
  const auto now = runtime::now();
  if (!turn.may_pass(machine.deadline(), machine.granted_ttl(), now)) return false;
  return from.lock->here.pass(from.label, [&](const lock_terms& terms) {
    if (!core::worth_passing(terms.rule, machine.granted_ttl(), machine.counted_from(), now)) {
      return std::shared_ptr<lease_state>{};
    }
    const auto granted = core::as_passed(
        terms.rule, {turn.pass(), machine.granted_ttl(), machine.counted_from(), 1}, now);
    auto lease = std::make_shared<lease_state>(shared_from_this(), from.lock, from.id, granted,
                                               terms, now, turn);
    ++counts.held_now;
    ++counts.acquisitions;
    // The keeper runs already: it watched the lease that this one comes from.
    static_cast<void>(keeper_.watch(*lease));
    return lease;
  });
}

result<std::shared_ptr<lease_state>> client_state::adopt(const std::shared_ptr<lock_state>& lock,
                                                         const lock_terms& terms,
                                                         const lease_ticket& ticket) {
  if (auto ok = usable(); !ok) return fail(std::move(ok.error()));
  const auto id = core::owner_id::parse(ticket.owner);
  if (!id) {
    return fail(errc::invalid_argument, "an owner is 32 lower-case hexadecimal digits");
  }
  const auto until = core::after(runtime::now(), options.operation_timeout);
  auto got = stores::wait_here<result<stores::renewal>>([&](auto& by, auto done) {
    lock->store->extend(*id, ticket.token, terms.rule.ttl, until, by, std::move(done));
  });
  if (!got) return fail(record_failure(lock->name, std::move(got.error())));
  if (!got->renewed) {
    return fail(record_failure(
        lock->name,
        {errc::lease_lost, "the lease had ended before: " + std::string{to_string(got->why)}, {}}));
  }
  if (ticket.token != fencing_token{} && got->token != ticket.token) {
    return fail(errc::invalid_argument, "the lease has token " + to_string(got->token) + ", not " +
                                            to_string(ticket.token));
  }
  return hold(lock, *id, {got->token, got->ttl, got->counted_from}, terms, false);
}

}  // namespace holdfast::detail
