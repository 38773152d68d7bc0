// How a client comes to hold a lease: of what a store granted, from another lease here, or by a
// ticket.
#include <utility>

#include "client/client_state.hpp"
#include "client/mutex_state.hpp"
#include "runtime/clock.hpp"

namespace holdfast::detail {

namespace {

// A store tells of changes to a lock from the first renewal on. By then most leases are over: of
// those that are held briefly there is none to be told.
constexpr core::duration first_renewal_max = std::chrono::seconds{1};

}  // namespace

void client_state::renew_early(lease_state& fresh) {
  if (!store_->tells_changes()) return;
  static_cast<void>(fresh.hurry(core::after(fresh.granted_at, first_renewal_max)));
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
  renew_early(*lease);
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
    renew_early(*lease);
    // The keeper runs already: it watched the lease that this one comes from.
    static_cast<void>(keeper_.watch(*lease));
    return lease;
  });
}

void client_state::adopt(std::shared_ptr<const mutex_state> with, const lease_ticket& ticket,
                         stores::caller& by, on_adopted done) {
  const auto id = core::owner_id::parse(ticket.owner);
  if (!id) {
    return done(fail(errc::invalid_argument, "an owner is 32 lower-case hexadecimal digits"));
  }
  const auto until = core::after(runtime::now(), options.operation_timeout);
  const auto& lock = with->lock;
  lock->store->extend(
      *id, ticket.token, with->terms.rule.ttl, until, by,
      [this, with, id, token = ticket.token, done = std::move(done)](result<stores::renewal> got) {
        done(adopted(*with, *id, token, std::move(got)));
      });
}

result<std::shared_ptr<lease_state>> client_state::adopted(const mutex_state& with,
                                                           const core::owner_id& id,
                                                           fencing_token expected,
                                                           result<stores::renewal> got) {
  const auto& lock = with.lock;
  if (!got) return fail(record_failure(lock->name, std::move(got.error())));
  if (!got->renewed) {
    return fail(record_failure(
        lock->name,
        {errc::lease_lost, "the lease had ended before: " + std::string{to_string(got->why)}, {}}));
  }
  if (expected != fencing_token{} && got->token != expected) {
    return fail(errc::invalid_argument,
                "the lease has token " + to_string(got->token) + ", not " + to_string(expected));
  }
  return hold(lock, id, {got->token, got->ttl, got->counted_from}, with.terms, false);
}

}  // namespace holdfast::detail
