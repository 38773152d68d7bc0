#include <atomic>
#include <optional>
#include <thread>

#include <holdfast/recursive_mutex.hpp>

#include "client/client_access.hpp"
#include "client/locking.hpp"
#include "client/value_or_throw.hpp"

namespace holdfast {

namespace {

using detail::recursive_leases;

recursive_leases::owner owner_of(std::uint64_t number) {
  return {number == 0 ? std::this_thread::get_id() : std::thread::id{}, number};
}

// Null for a handle that was moved from, and in a forked child.
recursive_leases* leases_of(const mutex& once) {
  const auto& s = detail::client_access::state_of(once);
  return detail::check(s) ? &s->lock->recursive : nullptr;
}

}  // namespace

lock_owner::lock_owner() noexcept {
  static std::atomic<std::uint64_t> made{0};
  number_ = ++made;
}

recursive_mutex recursive_mutex::owned_by(const lock_owner& owner) const {
  auto same = *this;
  same.owner_ = owner.number_;
  return same;
}

bool recursive_mutex::take_again() {
  const auto& s = detail::client_access::state_of(once_);
  detail::value_or_throw(detail::check(s));
  return detail::value_or_throw(s->lock->recursive.take_again(owner_of(owner_), name(), depth_max));
}

void recursive_mutex::lock() {
  if (!take_again()) leases_of(once_)->put(owner_of(owner_), once_.acquire());
}

bool recursive_mutex::try_lock() { return try_lock_within(std::chrono::nanoseconds::zero()); }

bool recursive_mutex::try_lock_within(std::chrono::nanoseconds wait) {
  if (take_again()) return true;
  auto got = once_.try_acquire(wait);
  if (got) leases_of(once_)->put(owner_of(owner_), std::move(*got));
  return got.has_value();
}

void recursive_mutex::unlock() noexcept {
  auto* leases = leases_of(once_);
  if (leases == nullptr) return;
  std::optional<lease> last;
  if (leases->leave(owner_of(owner_), last) != recursive_leases::left::nothing) return;
  const auto& s = detail::client_access::state_of(once_);
  s->client->tell({.type = event::kind::misuse,
                   .lock = s->lock->name,
                   .code = errc::invalid_argument,
                   .detail = "unlock() of a recursive_mutex that this owner does not hold"});
}

lease* recursive_mutex::current() noexcept {
  auto* leases = leases_of(once_);
  return leases == nullptr ? nullptr : leases->of(owner_of(owner_));
}

std::size_t recursive_mutex::depth() const noexcept {
  auto* leases = leases_of(once_);
  return leases == nullptr ? 0 : leases->depth(owner_of(owner_));
}

}  // namespace holdfast
