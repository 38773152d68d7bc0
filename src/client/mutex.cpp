#include <new>
#include <utility>

#include <holdfast/mutex.hpp>
#include <holdfast/untrusted.hpp>

#include "client/acquisition.hpp"
#include "client/client_state.hpp"
#include "client/mutex_state.hpp"
#include "client/value_or_throw.hpp"

namespace holdfast {

namespace {

using state = std::shared_ptr<detail::mutex_state>;

// As in lease.cpp: in a forked child what this refers to must not be touched.
void let_go(state s) noexcept {
  if (s && s->client->forked()) static_cast<void>(new (std::nothrow) state{std::move(s)});
}

using detail::fail;
using detail::value_or_throw;
using untrusted::escape;

result<void> check(const state& s) {
  if (!s) return fail(errc::invalid_argument, "this mutex object was moved from");
  return s->client->usable();
}

result<detail::client_state::acquired> ask(const state& s, core::duration wait,
                                           const std::stop_token& stop) {
  if (auto ok = check(s); !ok) return fail(std::move(ok.error()));
  std::shared_ptr<detail::acquisition> mine;
  return stores::wait_here<result<detail::client_state::acquired>>([&](auto& by, auto done) {
    mine = std::make_shared<detail::acquisition>(s, wait, stop, by, std::move(done));
    mine->begin();
  });
}

std::string who_is(const holder& by) {
  if (by.foreign) return "a client that is not Holdfast";
  return escape(by.host) + ", pid " + std::to_string(by.pid) +
         (by.label.empty() ? "" : ", \"" + escape(by.label) + "\"") + ", token " +
         to_string(by.token);
}

failure gave_up(detail::client_state::not_acquired why) {
  using cause = detail::client_state::not_acquired::cause;
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
      told.message = "another holder had the lock for the whole wait";
      break;
  }
  if (why.met) {
    told.message += ": " + who_is(why.met->holder);
    if (!why.met->remaining) {
      told.message += "; its lock has no expiry, so only that client, or a person, can free it";
    }
    told.holder = std::move(why.met->holder);
  }
  return told;
}

}  // namespace

result<void> mutex::usable() const { return check(state_); }

mutex::mutex(state s) noexcept : state_{std::move(s)} {}
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
  auto got = value_or_throw(ask(state_, wait, stop));
  if (!got) return std::nullopt;
  return lease{std::move(*got)};
}

result<lease> mutex::acquire_result(any_nanoseconds wait, const std::stop_token& stop) {
  auto got = ask(state_, wait, stop);
  if (!got) return fail(std::move(got.error()));
  if (*got) return lease{std::move(**got)};
  return fail(state_->client->record_failure(state_->lock->name, gave_up(std::move(got->error()))));
}

result<lease> mutex::acquire_result(const std::stop_token& stop) {
  if (auto ok = check(state_); !ok) return fail(std::move(ok.error()));
  return acquire_result(state_->client->options.wait_limit, stop);
}

lease mutex::acquire(any_nanoseconds wait, const std::stop_token& stop) {
  return value_or_throw(acquire_result(wait, stop));
}

lease mutex::acquire(const std::stop_token& stop) { return value_or_throw(acquire_result(stop)); }

lease mutex::adopt(const lease_ticket& ticket) {
  value_or_throw(check(state_));
  if (ticket.name != state_->lock->name) {
    throw error{{errc::invalid_argument,
                 "the ticket is for the lock \"" + escape(ticket.name) + "\", not \"" +
                     escape(state_->lock->name) + "\"",
                 {}}};
  }
  using adopted = result<std::shared_ptr<detail::lease_state>>;
  return lease{value_or_throw(stores::wait_here<adopted>(
      [&](auto& by, auto done) { state_->client->adopt(state_, ticket, by, std::move(done)); }))};
}

lease* mutex::current() noexcept {
  if (!state_ || state_->client->forked()) return nullptr;
  auto& lock = *state_->lock;
  const std::lock_guard guard{lock.m};
  const auto found = lock.by_thread.find(std::this_thread::get_id());
  return found == lock.by_thread.end() ? nullptr : &found->second;
}

void mutex::lock() {
  value_or_throw(check(state_));
  if (const auto* mine = current(); mine != nullptr && mine->held()) {
    throw error{{errc::would_deadlock,
                 "this thread holds \"" + escape(name()) + "\" already and would wait for itself",
                 {}}};
  }
  auto got = acquire();
  auto& lock = *state_->lock;
  const std::lock_guard guard{lock.m};
  lock.by_thread.insert_or_assign(std::this_thread::get_id(), std::move(got));
}

bool mutex::try_lock() { return try_lock_within(std::chrono::nanoseconds::zero()); }

bool mutex::try_lock_within(std::chrono::nanoseconds wait) {
  value_or_throw(check(state_));
  if (const auto* mine = current(); mine != nullptr && mine->held()) return false;
  auto got = try_acquire(wait);
  if (!got) return false;
  auto& lock = *state_->lock;
  const std::lock_guard guard{lock.m};
  lock.by_thread.insert_or_assign(std::this_thread::get_id(), std::move(*got));
  return true;
}

void mutex::unlock() noexcept {
  if (!state_ || state_->client->forked()) return;
  auto& lock = *state_->lock;
  std::optional<lease> mine;
  {
    const std::lock_guard guard{lock.m};
    const auto found = lock.by_thread.find(std::this_thread::get_id());
    if (found != lock.by_thread.end()) {
      mine = std::move(found->second);
      lock.by_thread.erase(found);
    }
  }
  if (!mine) {
    state_->client->tell({.type = event::kind::misuse,
                          .lock = lock.name,
                          .code = errc::invalid_argument,
                          .detail = "unlock() of a mutex that this thread does not hold"});
  }
}

}  // namespace holdfast
