#include <atomic>
#include <mutex>
#include <optional>
#include <thread>

#include <holdfast/recursive_mutex.hpp>

#include "client/client_state.hpp"
#include "client/mutex_state.hpp"
#include "client/value_or_throw.hpp"

namespace holdfast {

namespace {

using untrusted::escape;

detail::lock_state::recursive_owner owner_of(std::uint64_t number) {
  return {number == 0 ? std::this_thread::get_id() : std::thread::id{}, number};
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
  detail::value_or_throw(once_.usable());
  auto& lock = *once_.state_->lock;
  const std::lock_guard guard{lock.m};
  const auto mine = lock.recursive.find(owner_of(owner_));
  if (mine == lock.recursive.end()) return false;
  auto& [held, depth] = mine->second;
  if (!held.held()) {
    throw error{{errc::lease_lost,
                 "\"" + escape(name()) + "\" was lost (" + std::string{to_string(held.why_lost())} +
                     "): unlock it as often as it was locked, then lock it anew",
                 {}}};
  }
  if (depth == depth_max) {
    throw error{{errc::overloaded,
                 "\"" + escape(name()) + "\" is locked " + std::to_string(depth) +
                     " times by one owner: this looks like a recursion that does not end",
                 {}}};
  }
  ++depth;
  return true;
}

void recursive_mutex::keep(lease first) {
  auto& lock = *once_.state_->lock;
  const std::lock_guard guard{lock.m};
  lock.recursive.insert_or_assign(owner_of(owner_),
                                  detail::lock_state::recursion{std::move(first), 1});
}

void recursive_mutex::lock() {
  if (!take_again()) keep(once_.acquire());
}

bool recursive_mutex::try_lock() { return try_lock_within(std::chrono::nanoseconds::zero()); }

bool recursive_mutex::try_lock_within(std::chrono::nanoseconds wait) {
  if (take_again()) return true;
  auto got = once_.try_acquire(wait);
  if (!got) return false;
  keep(std::move(*got));
  return true;
}

void recursive_mutex::unlock() noexcept {
  if (!once_.usable()) return;
  auto& lock = *once_.state_->lock;
  std::optional<lease> last;
  {
    const std::lock_guard guard{lock.m};
    const auto mine = lock.recursive.find(owner_of(owner_));
    if (mine != lock.recursive.end()) {
      if (--mine->second.depth > 0) return;
      last = std::move(mine->second.held);
      lock.recursive.erase(mine);
    }
  }
  if (!last) {
    once_.state_->client->tell({.type = event::kind::misuse,
                                .lock = lock.name,
                                .code = errc::invalid_argument,
                                .detail = "unlock() of a recursive_mutex that this owner does not "
                                          "hold"});
  }
}

lease* recursive_mutex::current() noexcept {
  if (!once_.usable()) return nullptr;
  auto& lock = *once_.state_->lock;
  const std::lock_guard guard{lock.m};
  const auto mine = lock.recursive.find(owner_of(owner_));
  return mine == lock.recursive.end() ? nullptr : &mine->second.held;
}

std::size_t recursive_mutex::depth() const noexcept {
  if (!once_.usable()) return 0;
  auto& lock = *once_.state_->lock;
  const std::lock_guard guard{lock.m};
  const auto mine = lock.recursive.find(owner_of(owner_));
  return mine == lock.recursive.end() ? 0 : mine->second.depth;
}

}  // namespace holdfast
