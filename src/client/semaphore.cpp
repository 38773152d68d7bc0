#include <string>
#include <utility>

#include <holdfast/semaphore.hpp>

#include "client/locking.hpp"
#include "client/share_states.hpp"
#include "client/value_or_throw.hpp"
#include "runtime/clock.hpp"

namespace holdfast {

namespace {

using detail::check;
using detail::fail;
using detail::let_go;
using detail::terms_ptr;
using detail::value_or_throw;
using state = std::shared_ptr<detail::semaphore_state>;

terms_ptr one_of(const state& s) { return s ? s->one : nullptr; }

// How many there are may have been set since: only the store knows whether it has so many.
result<terms_ptr> terms_for(const state& s, std::uint32_t permits) {
  if (auto ok = check(s); !ok) return fail(std::move(ok.error()));
  if (auto ok = core::check_units(permits); !ok) return fail(std::move(ok.error()));
  return s->of(permits);
}

}  // namespace

semaphore::semaphore(state s) noexcept : state_{std::move(s)} {}
semaphore::semaphore(const semaphore&) noexcept = default;
semaphore::semaphore(semaphore&&) noexcept = default;
semaphore& semaphore::operator=(const semaphore& other) noexcept {
  if (this != &other) let_go(std::exchange(state_, other.state_));
  return *this;
}
semaphore& semaphore::operator=(semaphore&& other) noexcept {
  if (this != &other) let_go(std::exchange(state_, std::move(other.state_)));
  return *this;
}
semaphore::~semaphore() { let_go(std::move(state_)); }

const std::string& semaphore::name() const noexcept {
  static const std::string none;
  return state_ ? state_->lock->name : none;
}

// ---- one permit --------------------------------------------------------------------------------

std::optional<lease> semaphore::try_acquire(const std::stop_token& stop) {
  return try_acquire(any_nanoseconds{}, stop);
}
std::optional<lease> semaphore::try_acquire(any_nanoseconds wait, const std::stop_token& stop) {
  return value_or_throw(detail::try_acquire(one_of(state_), wait, stop));
}
lease semaphore::acquire(const std::stop_token& stop) {
  return value_or_throw(acquire_result(stop));
}
lease semaphore::acquire(any_nanoseconds wait, const std::stop_token& stop) {
  return value_or_throw(acquire_result(wait, stop));
}
result<lease> semaphore::acquire_result(const std::stop_token& stop) {
  return detail::acquire(one_of(state_), {}, stop);
}
result<lease> semaphore::acquire_result(any_nanoseconds wait, const std::stop_token& stop) {
  return detail::acquire(one_of(state_), wait, stop);
}

// ---- several -----------------------------------------------------------------------------------

std::optional<lease> semaphore::try_acquire(std::uint32_t permits, any_nanoseconds wait,
                                            const std::stop_token& stop) {
  return value_or_throw(
      detail::try_acquire(value_or_throw(terms_for(state_, permits)), wait, stop));
}
lease semaphore::acquire(std::uint32_t permits, const std::stop_token& stop) {
  return value_or_throw(acquire_result(permits, stop));
}
lease semaphore::acquire(std::uint32_t permits, any_nanoseconds wait, const std::stop_token& stop) {
  return value_or_throw(acquire_result(permits, wait, stop));
}
result<lease> semaphore::acquire_result(std::uint32_t permits, const std::stop_token& stop) {
  auto how = terms_for(state_, permits);
  if (!how) return fail(std::move(how.error()));
  return detail::acquire(*how, {}, stop);
}
result<lease> semaphore::acquire_result(std::uint32_t permits, any_nanoseconds wait,
                                        const std::stop_token& stop) {
  auto how = terms_for(state_, permits);
  if (!how) return fail(std::move(how.error()));
  return detail::acquire(*how, wait, stop);
}

lease semaphore::adopt(const lease_ticket& ticket) {
  return value_or_throw(detail::adopt(one_of(state_), ticket));
}

// ---- how many there are ------------------------------------------------------------------------

void semaphore::resize(std::uint32_t permits) {
  value_or_throw(check(state_));
  value_or_throw(core::check_units(permits));
  const auto until = core::after(runtime::now(), state_->client->options.operation_timeout);
  value_or_throw(state_->lock->store->resize(permits, until));
}

std::uint32_t semaphore::capacity() {
  value_or_throw(check(state_));
  const auto until = core::after(runtime::now(), state_->client->options.operation_timeout);
  const auto now = value_or_throw(state_->lock->store->inspect(until));
  const bool in_use = now.kind == lock_status::form::semaphore;
  return in_use ? now.capacity : state_->lock->kind.permits;
}

}  // namespace holdfast
