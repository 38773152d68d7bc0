#include <utility>

#include <holdfast/shared_mutex.hpp>
#include <holdfast/untrusted.hpp>

#include "client/locking.hpp"
#include "client/share_states.hpp"
#include "client/value_or_throw.hpp"

namespace holdfast {

namespace {

using detail::check;
using detail::fail;
using detail::let_go;
using detail::terms_ptr;
using detail::value_or_throw;
using state = std::shared_ptr<detail::shared_mutex_state>;

terms_ptr to_write(const state& s) { return s ? s->writing : nullptr; }
terms_ptr to_read(const state& s) { return s ? s->reading : nullptr; }

// Why a thread that holds the lock must not wait for it.
void refuse_twice(const detail::shared_mutex_state& s, bool wants_to_write) {
  const bool writes = s.lock->by_thread.hold();
  if (!writes && !s.lock->readers.hold()) return;
  const auto name = '"' + untrusted::escape(s.lock->name) + '"';
  std::string message;
  if (writes && wants_to_write) {
    message = "this thread holds " + name + " already and would wait for itself";
  } else if (writes) {
    message = "this thread writes under " + name +
              " and would wait for itself: downgrade() makes it a reader";
  } else if (wants_to_write) {
    message = "this thread reads under " + name +
              ", and to write it would wait for itself: call unlock_shared() first, and look again "
              "at what was read, or lock() from the start and downgrade() after writing";
  } else {
    message = "this thread reads under " + name +
              " already: behind a writer that waits it would wait for itself";
  }
  throw error{{errc::would_deadlock, std::move(message), {}}};
}

bool holds(const detail::shared_mutex_state& s) {
  return s.lock->by_thread.hold() || s.lock->readers.hold();
}

bool try_lock(const state& s, const terms_ptr& how, detail::thread_leases& to,
              std::chrono::nanoseconds wait) {
  if (holds(*s)) return false;
  auto got = value_or_throw(detail::try_acquire(how, wait, {}));
  if (!got) return false;
  to.put(std::move(*got));
  return true;
}

}  // namespace

shared_mutex::shared_mutex(state s) noexcept : state_{std::move(s)} {}
shared_mutex::shared_mutex(const shared_mutex&) noexcept = default;
shared_mutex::shared_mutex(shared_mutex&&) noexcept = default;
shared_mutex& shared_mutex::operator=(const shared_mutex& other) noexcept {
  if (this != &other) let_go(std::exchange(state_, other.state_));
  return *this;
}
shared_mutex& shared_mutex::operator=(shared_mutex&& other) noexcept {
  if (this != &other) let_go(std::exchange(state_, std::move(other.state_)));
  return *this;
}
shared_mutex::~shared_mutex() { let_go(std::move(state_)); }

const std::string& shared_mutex::name() const noexcept {
  static const std::string none;
  return state_ ? state_->lock->name : none;
}

// ---- leases ------------------------------------------------------------------------------------

std::optional<lease> shared_mutex::try_acquire(const std::stop_token& stop) {
  return try_acquire(any_nanoseconds{}, stop);
}
std::optional<lease> shared_mutex::try_acquire(any_nanoseconds wait, const std::stop_token& stop) {
  return value_or_throw(detail::try_acquire(to_write(state_), wait, stop));
}
lease shared_mutex::acquire(const std::stop_token& stop) {
  return value_or_throw(acquire_result(stop));
}
lease shared_mutex::acquire(any_nanoseconds wait, const std::stop_token& stop) {
  return value_or_throw(acquire_result(wait, stop));
}
result<lease> shared_mutex::acquire_result(const std::stop_token& stop) {
  return detail::acquire(to_write(state_), {}, stop);
}
result<lease> shared_mutex::acquire_result(any_nanoseconds wait, const std::stop_token& stop) {
  return detail::acquire(to_write(state_), wait, stop);
}

std::optional<lease> shared_mutex::try_acquire_shared(const std::stop_token& stop) {
  return try_acquire_shared(any_nanoseconds{}, stop);
}
std::optional<lease> shared_mutex::try_acquire_shared(any_nanoseconds wait,
                                                      const std::stop_token& stop) {
  return value_or_throw(detail::try_acquire(to_read(state_), wait, stop));
}
lease shared_mutex::acquire_shared(const std::stop_token& stop) {
  return value_or_throw(acquire_shared_result(stop));
}
lease shared_mutex::acquire_shared(any_nanoseconds wait, const std::stop_token& stop) {
  return value_or_throw(acquire_shared_result(wait, stop));
}
result<lease> shared_mutex::acquire_shared_result(const std::stop_token& stop) {
  return detail::acquire(to_read(state_), {}, stop);
}
result<lease> shared_mutex::acquire_shared_result(any_nanoseconds wait,
                                                  const std::stop_token& stop) {
  return detail::acquire(to_read(state_), wait, stop);
}

result<void> shared_mutex::downgrade(lease& held) {
  if (auto ok = check(state_); !ok) return fail(std::move(ok.error()));
  return detail::downgrade(state_->lock, held);
}

lease shared_mutex::adopt(const lease_ticket& ticket) {
  return value_or_throw(detail::adopt(to_read(state_), ticket));
}

// ---- by thread ---------------------------------------------------------------------------------

lease* shared_mutex::current() noexcept {
  if (!state_ || state_->client->forked()) return nullptr;
  auto* writing = state_->lock->by_thread.mine();
  return writing != nullptr ? writing : state_->lock->readers.mine();
}

void shared_mutex::lock() {
  value_or_throw(check(state_));
  refuse_twice(*state_, true);
  state_->lock->by_thread.put(acquire());
}

bool shared_mutex::try_lock() { return try_lock_within(std::chrono::nanoseconds::zero()); }

bool shared_mutex::try_lock_within(std::chrono::nanoseconds wait) {
  value_or_throw(check(state_));
  return holdfast::try_lock(state_, state_->writing, state_->lock->by_thread, wait);
}

void shared_mutex::unlock() noexcept {
  if (!state_ || state_->client->forked()) return;
  detail::unlock(state_->writing, state_->lock->by_thread,
                 "unlock() of a shared_mutex that this thread does not hold to write");
}

void shared_mutex::lock_shared() {
  value_or_throw(check(state_));
  refuse_twice(*state_, false);
  state_->lock->readers.put(acquire_shared());
}

bool shared_mutex::try_lock_shared() {
  return try_lock_shared_within(std::chrono::nanoseconds::zero());
}

bool shared_mutex::try_lock_shared_within(std::chrono::nanoseconds wait) {
  value_or_throw(check(state_));
  return holdfast::try_lock(state_, state_->reading, state_->lock->readers, wait);
}

void shared_mutex::unlock_shared() noexcept {
  if (!state_ || state_->client->forked()) return;
  detail::unlock(state_->reading, state_->lock->readers,
                 "unlock_shared() of a shared_mutex that this thread does not hold to read");
}

}  // namespace holdfast
