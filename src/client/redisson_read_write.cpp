#include <optional>
#include <thread>
#include <utility>

#include <holdfast/recursive_mutex.hpp>
#include <holdfast/redisson/read_write_lock.hpp>
#include <holdfast/untrusted.hpp>

#include "client/client_access.hpp"
#include "client/locking.hpp"
#include "client/redisson_handles.hpp"
#include "client/value_or_throw.hpp"

namespace holdfast::redisson {

namespace {

using detail::client_access;
using detail::recursive_leases;

recursive_leases::owner this_thread() { return {std::this_thread::get_id(), 0}; }

// Null for a handle that was moved from, and in a forked child.
detail::lock_state* lock_of(const mutex& side) {
  const auto& s = client_access::state_of(side);
  return detail::check(s) ? s->lock.get() : nullptr;
}

// A thread that reads, and does not write, must not wait for readers to be gone.
bool reads_only(detail::lock_state& lock) {
  const auto* held = lock.recursive.of(this_thread());
  return held != nullptr && held->held() && lock.writes.mine() == 0;
}

mutex reading_side_of(const mutex& writing) {
  const auto& s = state_of(writing);
  auto terms = s.terms;
  terms.units = 1;
  return client_access::make_mutex(
      std::make_shared<detail::mutex_state>(s.client, s.lock, std::move(terms)));
}

}  // namespace

// ---- one side ----------------------------------------------------------------------------------

bool rread_write_side::take_again() {
  auto& lock = *state_of(lock_).lock;
  const bool again = detail::value_or_throw(
      lock.recursive.take_again(this_thread(), name(), recursive_mutex::depth_max));
  if (again && side_ == side::writes) lock.writes.add();
  return again;
}

void rread_write_side::put(lease first) {
  auto& lock = *state_of(lock_).lock;
  lock.recursive.put(this_thread(), std::move(first));
  if (side_ == side::writes) lock.writes.add();
}

void rread_write_side::lock() {
  if (side_ == side::writes && reads_only(*state_of(lock_).lock)) {
    throw error{{errc::would_deadlock,
                 "this thread reads under \"" + untrusted::escape(name()) +
                     "\", and to write it would wait for itself: call unlock_shared() first, and "
                     "look again at what was read, or lock() from the start",
                 {}}};
  }
  if (!take_again()) put(lock_.acquire());
}

bool rread_write_side::try_lock() { return try_lock_within(std::chrono::nanoseconds::zero()); }

bool rread_write_side::try_lock_within(std::chrono::nanoseconds wait) {
  if (side_ == side::writes && reads_only(*state_of(lock_).lock)) return false;
  if (take_again()) return true;
  auto got = lock_.try_acquire(wait);
  if (got) put(std::move(*got));
  return got.has_value();
}

std::size_t rread_write_side::holds() const noexcept {
  auto* lock = lock_of(lock_);
  if (lock == nullptr) return 0;
  const auto writes = lock->writes.mine();
  return side_ == side::writes ? writes : lock->recursive.depth(this_thread()) - writes;
}

void rread_write_side::unlock() noexcept {
  auto* lock = lock_of(lock_);
  if (lock == nullptr) return;
  if (holds() == 0) {
    return client_access::state_of(lock_)->client->tell(
        {.type = event::kind::misuse,
         .lock = lock->name,
         .code = errc::invalid_argument,
         .detail = "unlock() of a side of an rread_write_lock that this thread does not hold"});
  }
  if (side_ == side::writes) lock->writes.drop();
  std::optional<lease> last;
  const auto left = lock->recursive.leave(this_thread(), last);
  if (side_ == side::reads || left == recursive_leases::left::the_last) return;
  if (lock->writes.mine() > 0) return;
  // Where it fails the thread stays the writer: that protects what it reads, too.
  static_cast<void>(
      detail::downgrade(client_access::state_of(lock_)->lock, *lock->recursive.of(this_thread())));
}

// ---- both --------------------------------------------------------------------------------------

rread_write_lock::rread_write_lock(const mutex& writing)
    : writing_{writing, rread_write_side::side::writes},
      reading_{reading_side_of(writing), rread_write_side::side::reads} {}

rread_write_lock::rread_write_lock(client& on, std::string_view name)
    : rread_write_lock{on, name, usable(on).options.lock} {}

rread_write_lock::rread_write_lock(client& on, std::string_view name, const lock_options& options)
    : rread_write_lock{open(on, name, options, {core::lock_kind::form::redisson_rw})} {}

result<void> rread_write_lock::downgrade(lease& held) {
  const auto& s = client_access::state_of(writing_.lock_);
  if (auto ok = detail::check(s); !ok) return detail::fail(std::move(ok.error()));
  return detail::downgrade(s->lock, held);
}

lease* rread_write_lock::current() noexcept {
  auto* lock = lock_of(writing_.lock_);
  return lock == nullptr ? nullptr : lock->recursive.of(this_thread());
}

lock_status rread_write_lock::status() { return status_of(writing_.lock_); }
bool rread_write_lock::force_unlock() { return redisson::force_unlock(writing_.lock_); }

}  // namespace holdfast::redisson
