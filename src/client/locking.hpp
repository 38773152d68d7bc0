// What mutex, shared_mutex and semaphore do alike: acquiring a lease, saying why there is none, and
// holding one by thread.
#pragma once

#include <memory>
#include <new>
#include <optional>
#include <stop_token>
#include <string_view>
#include <utility>

#include <holdfast/duration.hpp>
#include <holdfast/lease.hpp>
#include <holdfast/result.hpp>

#include "client/client_state.hpp"
#include "client/mutex_state.hpp"

namespace holdfast::detail {

class lease_access {
 public:
  [[nodiscard]] static lease make(std::shared_ptr<lease_state> state) noexcept {
    return lease{std::move(state)};
  }
  // Null: it was moved from.
  [[nodiscard]] static const std::shared_ptr<lease_state>& of(const lease& one) noexcept {
    return one.state_;
  }
};

// A handle goes. In a forked child what it refers to must not be touched: locked by threads that do
// not exist there, it is leaked.
template <class State>
void let_go(std::shared_ptr<State> s) noexcept {
  if (s && s->client->forked()) {
    static_cast<void>(new (std::nothrow) std::shared_ptr<State>{std::move(s)});
  }
}

using terms_ptr = std::shared_ptr<const mutex_state>;

// First of everything: the handle was moved from, or belongs to the parent process.
template <class State>
[[nodiscard]] result<void> check(const std::shared_ptr<State>& s) {
  if (!s) return fail(errc::invalid_argument, "this lock object was moved from");
  return s->client->usable();
}

// Empty: not acquired in time, or stopped.
[[nodiscard]] result<std::optional<lease>> try_acquire(const terms_ptr& how, any_nanoseconds wait,
                                                       const std::stop_token& stop);
// Without `wait`: the client's wait limit.
[[nodiscard]] result<lease> acquire(const terms_ptr& how, std::optional<any_nanoseconds> wait,
                                    const std::stop_token& stop);
[[nodiscard]] result<lease> adopt(const terms_ptr& how, const lease_ticket& ticket);

// Of a lock that several may hold: the writer that has `held` becomes a reader.
[[nodiscard]] result<void> downgrade(const std::shared_ptr<lock_state>& lock, lease& held);

// Gives back what the thread holds there; `misused` is told if that is nothing.
void unlock(const terms_ptr& how, thread_leases& from, std::string_view misused) noexcept;

}  // namespace holdfast::detail
