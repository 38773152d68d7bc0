#include <new>
#include <utility>

#include <holdfast/mutex.hpp>

#include "client/client_state.hpp"
#include "client/mutex_state.hpp"

namespace holdfast {

namespace {

using state = std::shared_ptr<detail::mutex_state>;

// As in lease.cpp: in a forked child what this refers to must not be touched.
void let_go(state s) noexcept {
  if (s && s->client->forked()) static_cast<void>(new (std::nothrow) state{std::move(s)});
}

const state& usable(const state& s) {
  if (!s) throw error{{errc::invalid_argument, "this mutex object was moved from", {}}};
  if (auto ok = s->client->usable(); !ok) throw error{std::move(ok.error())};
  return s;
}

detail::client_state::acquired ask(const state& s, core::duration wait,
                                   const std::stop_token& stop) {
  auto got = usable(s)->client->acquire(s->lock, s->terms, wait, stop);
  if (!got) throw error{std::move(got.error())};
  return std::move(*got);
}

failure gave_up(const detail::client_state::not_acquired& why) {
  if (why.stopped) return {errc::stopped, "stopped while waiting; nothing is held", {}};
  std::string text = "somebody else held the lock for the whole wait";
  if (why.met) {
    const auto& by = why.met->holder;
    text += by.foreign ? ": a client that is not Holdfast"
                       : ": " + escape(by.host) + ", pid " + std::to_string(by.pid) +
                             (by.label.empty() ? "" : ", \"" + escape(by.label) + "\"") +
                             ", token " + to_string(by.token);
    if (!why.met->remaining) {
      text += "; its lock has no expiry, so only that client, or a person, can free it";
    }
  }
  return {errc::timed_out, std::move(text), {}};
}

}  // namespace

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
  auto got = ask(state_, wait, stop);
  if (!got) return std::nullopt;
  return lease{std::move(*got)};
}

lease mutex::acquire(const std::stop_token& stop) {
  auto got = ask(state_, usable(state_)->client->options.wait_limit, stop);
  if (!got) throw error{state_->client->record_failure(state_->lock->name, gave_up(got.error()))};
  return lease{std::move(*got)};
}

lease mutex::adopt(const lease_ticket& ticket) {
  const auto& s = usable(state_);
  if (ticket.name != s->lock->name) {
    throw error{{errc::invalid_argument,
                 "the ticket is for the lock \"" + escape(ticket.name) + "\", not \"" +
                     escape(s->lock->name) + "\"",
                 {}}};
  }
  auto got = s->client->adopt(s->lock, s->terms, ticket);
  if (!got) throw error{std::move(got.error())};
  return lease{std::move(*got)};
}

lease* mutex::current() noexcept {
  if (!state_ || state_->client->forked()) return nullptr;
  auto& lock = *state_->lock;
  const std::lock_guard guard{lock.m};
  const auto found = lock.by_thread.find(std::this_thread::get_id());
  return found == lock.by_thread.end() ? nullptr : &found->second;
}

void mutex::lock() {
  usable(state_);
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
  usable(state_);
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
    state_->client->tell({event::kind::misuse,
                          lock.name,
                          {},
                          {},
                          errc::invalid_argument,
                          "unlock() of a mutex that this thread does not hold"});
  }
}

}  // namespace holdfast
