#include <utility>

#include <holdfast/redisson.hpp>
#include <holdfast/untrusted.hpp>

#include "client/client_access.hpp"
#include "client/value_or_throw.hpp"
#include "core/settings.hpp"
#include "runtime/clock.hpp"

namespace holdfast::redisson {

namespace {

using detail::client_access;
using detail::value_or_throw;

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

core::time_point deadline(const detail::mutex_state& of) {
  return core::after(runtime::now(), of.client->options.operation_timeout);
}

}  // namespace

rlock::rlock(client& on, std::string_view name, const lock_options& options, tokens kind)
    : lock_{open(on, name, options,
                 {kind == tokens::none ? core::lock_kind::form::redisson
                                       : core::lock_kind::form::redisson_fenced})},
      again_{client_access::make_recursive(lock_)} {}

rlock::rlock(client& on, std::string_view name)
    : rlock{on, name, usable(on).options.lock, tokens::none} {}

rlock::rlock(client& on, std::string_view name, lock_options options)
    : rlock{on, name, options, tokens::none} {}

rfenced_lock::rfenced_lock(client& on, std::string_view name)
    : rlock{on, name, usable(on).options.lock, tokens::counted} {}

rfenced_lock::rfenced_lock(client& on, std::string_view name, lock_options options)
    : rlock{on, name, options, tokens::counted} {}

rpermit_expirable_semaphore::rpermit_expirable_semaphore(client& on, std::string_view name,
                                                         std::uint32_t permits)
    : rpermit_expirable_semaphore{on, name, permits, usable(on).options.lock} {}

rpermit_expirable_semaphore::rpermit_expirable_semaphore(client& on, std::string_view name,
                                                         std::uint32_t permits,
                                                         lock_options options)
    : lock_{open(on, name, options, {core::lock_kind::form::redisson_permits, permits})} {}

lock_status rlock::status() {
  const auto& s = state_of(lock_);
  return value_or_throw(s.lock->store->inspect(deadline(s)));
}

bool rlock::force_unlock() {
  const auto& s = state_of(lock_);
  auto done = s.lock->store->break_with({}, deadline(s));
  if (!done && done.error().code == errc::not_held) return false;
  value_or_throw(std::move(done));
  return true;
}

}  // namespace holdfast::redisson
