#include <utility>

#include <holdfast/redisson.hpp>

#include "client/client_access.hpp"
#include "client/redisson_handles.hpp"
#include "client/shown_status.hpp"
#include "client/value_or_throw.hpp"
#include "core/settings.hpp"
#include "runtime/clock.hpp"

namespace holdfast::redisson {

namespace {

using detail::client_access;
using detail::value_or_throw;

}  // namespace

detail::client_state& usable(const client& on) {
  const auto& s = client_access::state_of(on);
  if (!s) throw error{{errc::invalid_argument, "this client object was moved from", {}}};
  value_or_throw(s->usable());
  return *s;
}

const detail::mutex_state& state_of(const mutex& lock) {
  const auto& s = client_access::state_of(lock);
  if (!s) throw error{{errc::invalid_argument, "this lock object was moved from", {}}};
  value_or_throw(s->client->usable());
  return *s;
}

mutex open(client& on, std::string_view name, const lock_options& options, core::lock_kind kind) {
  auto& s = usable(on);
  auto rule = value_or_throw(core::make_lease_rule(options, s.options.clock_drift_per_mille));
  auto lock = value_or_throw(s.open(name, kind));
  return client_access::make_mutex(std::make_shared<detail::mutex_state>(
      client_access::state_of(on), std::move(lock), detail::lock_terms{rule, options.label}));
}

namespace {

core::time_point deadline(const detail::mutex_state& of) {
  return core::after(runtime::now(), of.client->options.operation_timeout);
}

}  // namespace

lock_status status_of(const mutex& lock) {
  const auto& s = state_of(lock);
  return detail::as_users_see_it(value_or_throw(s.lock->store->inspect(deadline(s))));
}

bool force_unlock(const mutex& lock) {
  const auto& s = state_of(lock);
  auto done = s.lock->store->break_with({}, deadline(s));
  if (!done && done.error().code == errc::not_held) return false;
  value_or_throw(std::move(done));
  return true;
}

rlock::rlock(client& on, std::string_view name, const lock_options& options, kind of)
    : leasing{open(on, name, options,
                   {of == kind::plain    ? core::lock_kind::form::redisson
                    : of == kind::fenced ? core::lock_kind::form::redisson_fenced
                                         : core::lock_kind::form::redisson_fair})},
      again_{client_access::make_recursive(lock_)} {}

rlock::rlock(client& on, std::string_view name)
    : rlock{on, name, usable(on).options.lock, kind::plain} {}

rlock::rlock(client& on, std::string_view name, const lock_options& options)
    : rlock{on, name, options, kind::plain} {}

rfenced_lock::rfenced_lock(client& on, std::string_view name)
    : rlock{on, name, usable(on).options.lock, kind::fenced} {}

rfenced_lock::rfenced_lock(client& on, std::string_view name, const lock_options& options)
    : rlock{on, name, options, kind::fenced} {}

rfair_lock::rfair_lock(client& on, std::string_view name)
    : rlock{on, name, usable(on).options.lock, kind::fair} {}

rfair_lock::rfair_lock(client& on, std::string_view name, const lock_options& options)
    : rlock{on, name, options, kind::fair} {}

rpermit_expirable_semaphore::rpermit_expirable_semaphore(client& on, std::string_view name,
                                                         std::uint32_t permits)
    : rpermit_expirable_semaphore{on, name, permits, usable(on).options.lock} {}

rpermit_expirable_semaphore::rpermit_expirable_semaphore(client& on, std::string_view name,
                                                         std::uint32_t permits,
                                                         const lock_options& options)
    : leasing{open(on, name, options, {core::lock_kind::form::redisson_permits, permits})} {}

lock_status rlock::status() { return status_of(lock_); }
bool rlock::force_unlock() { return redisson::force_unlock(lock_); }

}  // namespace holdfast::redisson
