#include <utility>

#include <holdfast/mutex.hpp>
#include <holdfast/untrusted.hpp>

#include "client/locking.hpp"
#include "client/value_or_throw.hpp"

namespace holdfast {

using detail::check;
using detail::let_go;
using detail::value_or_throw;
using untrusted::escape;

mutex::mutex(std::shared_ptr<detail::mutex_state> s) noexcept : state_{std::move(s)} {}
mutex::mutex(const mutex&) noexcept = default;
mutex::mutex(mutex&&) noexcept = default;
mutex& mutex::operator=(const mutex& other) noexcept {
  if (this != &other) let_go(std::exchange(state_, other.state_));
  return *this;
}
mutex& mutex::operator=(mutex&& other) noexcept {
  if (this != &other) let_go(std::exchange(state_, std::move(other.state_)));
  return *this;
}
mutex::~mutex() { let_go(std::move(state_)); }

const std::string& mutex::name() const noexcept {
  static const std::string none;
  return state_ ? state_->lock->name : none;
}

std::optional<lease> mutex::try_acquire(const std::stop_token& stop) {
  return try_acquire(std::chrono::nanoseconds::zero(), stop);
}

std::optional<lease> mutex::try_acquire(any_nanoseconds wait, const std::stop_token& stop) {
  return value_or_throw(detail::try_acquire(state_, wait, stop));
}

result<lease> mutex::acquire_result(any_nanoseconds wait, const std::stop_token& stop) {
  return detail::acquire(state_, wait, stop);
}

result<lease> mutex::acquire_result(const std::stop_token& stop) {
  return detail::acquire(state_, {}, stop);
}

lease mutex::acquire(any_nanoseconds wait, const std::stop_token& stop) {
  return value_or_throw(acquire_result(wait, stop));
}

lease mutex::acquire(const std::stop_token& stop) { return value_or_throw(acquire_result(stop)); }

lease mutex::adopt(const lease_ticket& ticket) {
  return value_or_throw(detail::adopt(state_, ticket));
}

lease* mutex::current() noexcept {
  if (!state_ || state_->client->forked()) return nullptr;
  return state_->lock->by_thread.mine();
}

void mutex::lock() {
  value_or_throw(check(state_));
  if (state_->lock->by_thread.hold()) {
    throw error{{errc::would_deadlock,
                 "this thread holds \"" + escape(name()) + "\" already and would wait for itself",
                 {}}};
  }
  state_->lock->by_thread.put(acquire());
}

bool mutex::try_lock() { return try_lock_within(std::chrono::nanoseconds::zero()); }

bool mutex::try_lock_within(std::chrono::nanoseconds wait) {
  value_or_throw(check(state_));
  if (state_->lock->by_thread.hold()) return false;
  auto got = try_acquire(wait);
  if (!got) return false;
  state_->lock->by_thread.put(std::move(*got));
  return true;
}

void mutex::unlock() noexcept {
  if (!state_ || state_->client->forked()) return;
  detail::unlock(state_, state_->lock->by_thread,
                 "unlock() of a mutex that this thread does not hold");
}

}  // namespace holdfast
