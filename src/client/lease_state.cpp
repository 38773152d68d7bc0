#include "client/lease_state.hpp"

#include <utility>

#include "client/client_state.hpp"
#include "runtime/clock.hpp"

namespace holdfast::detail {

lease_state::lease_state(std::shared_ptr<client_state> owner, std::shared_ptr<lock_state> on,
                         const core::owner_id& as, const core::grant& granted,
                         const lock_terms& terms, core::time_point held_from,
                         std::optional<core::cohort_turn> turn)
    : lock{std::move(on)},
      id{as},
      token{granted.token},
      granted_at{held_from},
      label{terms.label},
      generation_{runtime::fork_generation()},
      ttl_{terms.rule.ttl},
      client_{std::move(owner)},
      machine_{terms.rule, granted, held_from},
      turn_{turn} {}

void lease_state::leave_cohort() {
  {
    const std::lock_guard guard{m_};
    if (!turn_) return;
    turn_.reset();
  }
  lock->here.leave();
}

bool lease_state::pass_on(client_state& owner) {
  std::optional<core::cohort_turn> turn;
  {
    const std::lock_guard guard{m_};
    turn = turn_;
  }
  // The machine has ended: nobody changes it any more.
  if (!turn || !owner.pass_on(*this, machine_, *turn)) return false;
  const std::lock_guard guard{m_};
  turn_.reset();
  return true;
}

event lease_state::released(core::time_point now) const {
  return {.type = event::kind::released,
          .lock = lock->name,
          .token = token,
          .duration = now - granted_at};
}

std::shared_ptr<client_state> lease_state::client() {
  const std::lock_guard guard{m_};
  return client_;
}

// A loss that a query noticed before the keeper did: from here on it is as if the keeper had.
void lease_state::announce(loss why) {
  if (why == loss::none) return;
  if (const auto owner = client()) {
    owner->watch().forget(*this);
    owner->on_lost(shared_from_this(), why);
  }
}

core::time_point lease_state::expiry() {
  const std::lock_guard guard{m_};
  return machine_.expiry();
}

void lease_state::release_leftover(core::time_point give_up) {
  if (take_leftover()) lock->store->release_later(id, give_up);
}

bool lease_state::held() {
  loss noticed = loss::none;
  bool now_held = false;
  {
    const std::lock_guard guard{m_};
    if (!client_) return false;
    noticed = machine_.tick(runtime::now());
    now_held = machine_.is_held();
  }
  announce(noticed);
  return now_held;
}

core::duration lease_state::remaining() {
  if (!held()) return core::duration::zero();
  return std::max(core::duration::zero(), relied_on_until() - runtime::now());
}

core::time_point lease_state::relied_on_until() {
  const std::lock_guard guard{m_};
  return machine_.is_held() ? machine_.deadline() : core::time_point{};
}

std::stop_token lease_state::lost() {
  const bool over = !held();
  const std::lock_guard guard{m_};
  if (!lost_) {
    lost_.emplace();
    // A question after the fact must be answered by it; no callback is there yet that could run.
    if (over && machine_.why_lost() != loss::none) lost_->request_stop();
  }
  return lost_->get_token();
}

void lease_state::fire() {
  std::optional<std::stop_source> source;
  {
    const std::lock_guard guard{m_};
    if (!lost_) lost_.emplace();
    source = lost_;
  }
  source->request_stop();
}

loss lease_state::why_lost() {
  static_cast<void>(held());
  const std::lock_guard guard{m_};
  return machine_.why_lost();
}

void lease_state::progress() {
  const std::lock_guard guard{m_};
  machine_.progress(runtime::now());
}

failure lease_state::lost_failure(loss why) {
  return {errc::lease_lost, "the lease had ended before: " + std::string{to_string(why)}, {}};
}

failure lease_state::over_failure() {
  const auto why = why_lost();
  if (why == loss::none) return {errc::lease_lost, "the lease was given back or detached", {}};
  return lost_failure(why);
}

// Lost by our own clock, or recalled: the store may still have it for us. Taken or deleted: it does
// not. Once.
bool lease_state::take_leftover() {
  const std::lock_guard guard{m_};
  const auto why = machine_.why_lost();
  const bool may_be_left = why == loss::expired || why == loss::max_hold ||
                           why == loss::no_progress || why == loss::recalled;
  return may_be_left && !std::exchange(left_nothing_, true);
}

void lease_state::extend(const std::function<void(core::time_point, on_store)>& ask, on_done done) {
  const auto owner = client();
  if (!owner || !held()) return done(fail(over_failure()));
  ask(core::after(runtime::now(), owner->options.operation_timeout),
      [self = shared_from_this(), owner, done = std::move(done)](result<stores::renewal> got) {
        done(self->renewed_by_hand(*owner, std::move(got)));
      });
}

void lease_state::renew(stores::caller& by, on_done done) {
  extend([&](core::time_point until,
             on_store then) { lock->store->extend(id, token, ttl_, until, by, std::move(then)); },
         std::move(done));
}

result<fencing_token> lease_state::count(std::string_view counter) {
  if (auto ok = core::check_name(counter); !ok) return fail(std::move(ok.error()));
  const auto owner = client();
  if (!owner || !held()) return fail(over_failure());
  const auto until = core::after(runtime::now(), owner->options.operation_timeout);
  return lock->store->count(id, counter, until);
}

void lease_state::downgrade(stores::caller& by, on_done done) {
  extend(
      [&](core::time_point until, on_store then) {
        lock->store->downgrade(id, token, ttl_, until, by, std::move(then));
      },
      std::move(done));
}

result<void> lease_state::renewed_by_hand(client_state& owner, result<stores::renewal> got) {
  if (!got) {
    ++owner.counts.renewal_failures;
    return fail(std::move(got.error()));
  }
  const auto what = on_renewed(*got, runtime::now());
  announce(what.lost);
  if (!got->renewed || what.lost != loss::none) return fail(over_failure());
  ++owner.counts.renewals;
  // The deadline has moved; the keeper looks again when it comes to the old one.
  return {};
}

bool lease_state::end() {
  const std::lock_guard guard{m_};
  return machine_.end();
}

void lease_state::release(stores::caller& by, on_done done) {
  const auto owner = client();
  if (!owner) return done({});
  const bool was_held = held();
  const auto now = runtime::now();
  const auto give_up = core::after(now, owner->options.release_budget);
  if (!was_held || !end()) {
    if (why_lost() == loss::none) return done({});  // released already
    // The user has stopped. If the store still has it for us, others need not wait for the TTL.
    release_leftover(give_up);
    return done(fail(over_failure()));
  }
  owner->watch().forget(*this);
  --owner->counts.held_now;
  if (pass_on(*owner)) {
    ++owner->counts.releases;
    owner->tell(released(now));
    return done({});
  }
  lock->store->release(
      id, core::after(now, owner->options.operation_timeout), by,
      [self = shared_from_this(), owner, now, done = std::move(done)](
          result<stores::removal> said) { done(self->given_back(*owner, now, std::move(said))); });
}

result<void> lease_state::given_back(client_state& owner, core::time_point since,
                                     result<stores::removal> said) {
  leave_cohort();
  if (!said) {
    lock->store->release_later(id, core::after(since, owner.options.release_budget));
    return fail(owner.record_failure(lock->name, std::move(said.error())));
  }
  ++owner.counts.releases;
  switch (*said) {
    case stores::removal::released:
      owner.tell(released(since));
      return {};
    case stores::removal::unsure:
      return fail(owner.record_failure(
          lock->name, {errc::outcome_unknown,
                       "the lock is not held any more, but an answer was lost: it is not known "
                       "whether it was held to the end",
                       {}}));
    case stores::removal::gone:
    case stores::removal::taken:
      break;
  }
  return fail(owner.record_failure(
      lock->name, lost_failure(*said == stores::removal::taken ? loss::taken : loss::deleted)));
}

result<lease_ticket> lease_state::detach() {
  const auto owner = client();
  // Only what is held can be handed on: with a ticket for a lost lease another process could adopt
  // it while this one still gives it back.
  if (!owner || !held() || !end()) return fail(over_failure());
  owner->watch().forget(*this);
  leave_cohort();
  lock->store->forget(id);
  --owner->counts.held_now;
  return lease_ticket{lock->name, std::string{id.text()}, token};
}

void lease_state::abandon() noexcept {
  const auto owner = client();
  if (!owner) return;
  owner->watch().forget(*this);
  const bool was_held = end();
  if (was_held) {
    --owner->counts.held_now;
    ++owner->counts.releases;
  }
  {
    const std::lock_guard guard{m_};
    client_.reset();
  }
  if (!was_held && !take_leftover()) return leave_cohort();
  const auto now = runtime::now();
  if (!was_held || !pass_on(*owner)) {
    lock->store->release_later(id, core::after(now, owner->options.release_budget));
    leave_cohort();
  }
  if (was_held) owner->tell(released(now));
}

lease_state::due lease_state::on_due(core::time_point due_by, core::time_point now) {
  const std::lock_guard guard{m_};
  due what;
  what.lost = machine_.tick(now);
  what.renew = machine_.take_renewal(due_by, now);
  what.next = machine_.next_event();
  return what;
}

lease_state::due lease_state::on_renewed(const stores::renewal& answer, core::time_point now) {
  const std::lock_guard guard{m_};
  due what;
  what.lost = answer.renewed             ? machine_.renewed(answer.ttl, answer.counted_from, now)
              : answer.why == loss::none ? machine_.renewal_failed(now)
                                         : machine_.refused(answer.why);
  what.next = machine_.next_event();
  return what;
}

lease_state::due lease_state::on_renewal_failed(core::time_point now) {
  const std::lock_guard guard{m_};
  due what;
  what.lost = machine_.renewal_failed(now);
  what.next = machine_.next_event();
  return what;
}

core::time_point lease_state::hurry(core::time_point when) {
  const std::lock_guard guard{m_};
  machine_.renew_by(when);
  return machine_.next_event();
}

loss lease_state::on_pushed_loss(loss why) {
  const std::lock_guard guard{m_};
  return machine_.refused(why);
}

core::time_point lease_state::next_event() {
  const std::lock_guard guard{m_};
  return machine_.next_event();
}

}  // namespace holdfast::detail
