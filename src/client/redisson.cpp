#include <limits>
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
                                       : core::lock_kind::form::redisson_fenced})} {}

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

// True if this thread has the lock, and now has it once more.
bool rlock::enter_again() {
  auto& lock = *state_of(lock_).lock;
  const auto* mine = lock_.current();
  if (mine == nullptr) return false;
  if (!mine->held()) {
    throw error{{errc::lease_lost,
                 "this thread held \"" + untrusted::escape(name()) +
                     "\", lost it, and has not unlocked it yet",
                 {}}};
  }
  const std::lock_guard guard{lock.m};
  auto& again = lock.again_by_thread[std::this_thread::get_id()];
  if (again == std::numeric_limits<unsigned>::max() - 1) {
    throw error{{errc::overloaded, "this thread has locked it too often", {}}};
  }
  ++again;
  return true;
}

void rlock::lock() {
  if (!enter_again()) lock_.lock();
}

bool rlock::try_lock() { return try_lock_within(std::chrono::nanoseconds::zero()); }

bool rlock::try_lock_within(std::chrono::nanoseconds wait) {
  return enter_again() || lock_.try_lock_for(wait);
}

void rlock::unlock() noexcept {
  const auto& s = client_access::state_of(lock_);
  if (!s || s->client->forked()) return;
  {
    const std::lock_guard guard{s->lock->m};
    auto& by_thread = s->lock->again_by_thread;
    if (const auto found = by_thread.find(std::this_thread::get_id()); found != by_thread.end()) {
      if (--found->second == 0) by_thread.erase(found);
      return;
    }
  }
  lock_.unlock();
}

unsigned rlock::holds() const noexcept {
  const auto& s = client_access::state_of(lock_);
  if (!s || s->client->forked()) return 0;
  const std::lock_guard guard{s->lock->m};
  const auto me = std::this_thread::get_id();
  if (!s->lock->by_thread.contains(me)) return 0;
  const auto found = s->lock->again_by_thread.find(me);
  return found == s->lock->again_by_thread.end() ? 1 : found->second + 1;
}

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
