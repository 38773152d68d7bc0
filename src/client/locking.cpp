#include "client/locking.hpp"

#include <string>

#include <holdfast/untrusted.hpp>

#include "client/acquisition.hpp"
#include "client/lease_state.hpp"

namespace holdfast::detail {

using untrusted::escape;

namespace {

std::string who_is(const holder& by) {
  if (by.foreign) return "a client that is not Holdfast";
  return escape(by.host) + ", pid " + std::to_string(by.pid) +
         (by.label.empty() ? "" : ", \"" + escape(by.label) + "\"") + ", token " +
         to_string(by.token);
}

failure gave_up(const core::lock_kind& kind, client_state::not_acquired why) {
  using cause = client_state::not_acquired::cause;
  failure told{errc::timed_out, {}, {}};
  switch (why.why) {
    case cause::stopped:
      return {errc::stopped, "stopped while waiting; nothing is held", {}};
    case cause::behind_our_own:
      told.message = "another thread of this client had the lock, or asked for it first";
      break;
    case cause::late:
      told.message = "the lock was granted too late to be relied on, and was given back";
      break;
    case cause::busy:
      told.message = core::is_shared(kind)
                         ? "not enough of it was free for the whole wait, or others came first"
                         : "another holder had the lock for the whole wait";
      break;
  }
  if (why.met) {
    told.message += core::is_shared(kind) ? "; one that has it: " : ": ";
    told.message += who_is(why.met->holder);
    if (!why.met->remaining) {
      told.message += "; its lock has no expiry, so only that client, or a person, can free it";
    }
    told.holder = std::move(why.met->holder);
  }
  return told;
}

result<client_state::acquired> ask(const terms_ptr& how, core::duration wait,
                                   const std::stop_token& stop) {
  if (auto ok = check(how); !ok) return fail(std::move(ok.error()));
  std::shared_ptr<acquisition> mine;
  return stores::wait_here<result<client_state::acquired>>([&](auto& by, auto done) {
    mine = std::make_shared<acquisition>(how, wait, stop, by, std::move(done));
    mine->begin();
  });
}

}  // namespace

result<std::optional<lease>> try_acquire(const terms_ptr& how, any_nanoseconds wait,
                                         const std::stop_token& stop) {
  auto got = ask(how, wait, stop);
  if (!got) return fail(std::move(got.error()));
  if (!*got) return std::optional<lease>{};
  return std::optional<lease>{lease_access::make(std::move(**got))};
}

result<lease> acquire(const terms_ptr& how, std::optional<any_nanoseconds> wait,
                      const std::stop_token& stop) {
  if (auto ok = check(how); !ok) return fail(std::move(ok.error()));
  auto got = ask(how, wait.value_or(how->client->options.wait_limit), stop);
  if (!got) return fail(std::move(got.error()));
  if (*got) return lease_access::make(std::move(**got));
  return fail(how->client->record_failure(how->lock->name,
                                          gave_up(how->lock->kind, std::move(got->error()))));
}

result<lease> adopt(const terms_ptr& how, const lease_ticket& ticket) {
  if (auto ok = check(how); !ok) return fail(std::move(ok.error()));
  if (ticket.name != how->lock->name) {
    return fail(errc::invalid_argument, "the ticket is for the lock \"" + escape(ticket.name) +
                                            "\", not \"" + escape(how->lock->name) + "\"");
  }
  using adopted = result<std::shared_ptr<lease_state>>;
  auto got = stores::wait_here<adopted>(
      [&](auto& by, auto done) { how->client->adopt(how, ticket, by, std::move(done)); });
  if (!got) return fail(std::move(got.error()));
  return lease_access::make(std::move(*got));
}

result<void> downgrade(const std::shared_ptr<lock_state>& lock, lease& held) {
  const auto& of = lease_access::of(held);
  if (!of) return fail(errc::invalid_argument, "this lease object was moved from");
  if (of->forked()) return fail(errc::forked, "this lease belongs to the parent process");
  if (of->lock != lock) return fail(errc::invalid_argument, "the lease is of another lock");
  return stores::wait_here<result<void>>(
      [&](auto& by, auto done) { of->downgrade(by, std::move(done)); });
}

void unlock(const terms_ptr& how, thread_leases& from, std::string_view misused) noexcept {
  if (from.take()) return;
  how->client->tell({.type = event::kind::misuse,
                     .lock = how->lock->name,
                     .code = errc::invalid_argument,
                     .detail = misused});
}

}  // namespace holdfast::detail
