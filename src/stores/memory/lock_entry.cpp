#include "stores/memory/lock_entry.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "stores/store.hpp"

namespace holdfast::stores::memory {

namespace {

lock_status::form form_of(core::lock_kind::form what) noexcept {
  switch (what) {
    case core::lock_kind::form::exclusive:
    case core::lock_kind::form::redisson:
    case core::lock_kind::form::redisson_fenced:
    case core::lock_kind::form::redisson_permits:
    case core::lock_kind::form::redisson_rw:
    case core::lock_kind::form::redisson_fair:
      break;
    case core::lock_kind::form::shared:
      return lock_status::form::shared_mutex;
    case core::lock_kind::form::permits:
      return lock_status::form::semaphore;
  }
  return lock_status::form::mutex;
}

std::string_view name_of(core::lock_kind::form what) noexcept {
  switch (form_of(what)) {
    case lock_status::form::mutex:
    case lock_status::form::latch:  // nobody holds one
      break;
    case lock_status::form::shared_mutex:
      return "a shared_mutex";
    case lock_status::form::semaphore:
      return "a semaphore";
  }
  return "a mutex";
}

template <class All, class Is>
auto* found(All& all, Is is) noexcept {
  const auto at = std::find_if(all.begin(), all.end(), is);
  return at == all.end() ? nullptr : &*at;
}

}  // namespace

tl::unexpected<failure> name_in_use(std::string_view what) {
  return core::fail(errc::wrong_type,
                    "the name is in use for " + std::string{what} +
                        ": a name stands for one kind of lock at a time; choose another one");
}

void lock_entry::expire(core::time_point now) {
  std::erase_if(holds_, [&](const hold& one) { return one.expires <= now; });
}

result<void> lock_entry::become(const core::lock_kind& kind) {
  if (kind.what != kind_.what) {
    if (auto ok = check_unused(); !ok) return ok;
  }
  if (kept_) return {};
  if (in_use() && kind != kind_) {
    return core::fail(errc::invalid_argument,
                      "the semaphore is in use with " + std::to_string(capacity_) +
                          " permits, not " + std::to_string(kind.permits) +
                          ": its users must all name that number, or one of them sets it for all "
                          "by resize()");
  }
  kind_ = kind;
  capacity_ = core::capacity_of(kind);
  return {};
}

result<void> lock_entry::check_unused() const {
  if (!in_use()) return {};
  return name_in_use(name_of(kind_.what));
}

result<std::uint32_t> lock_entry::units_of(std::uint32_t wanted) const {
  if (wanted == core::whole) return capacity_;
  if (wanted <= capacity_) return wanted;
  return core::fail(errc::invalid_argument, "more permits are asked for than the " +
                                                std::to_string(capacity_) +
                                                " that the semaphore has");
}

bool lock_entry::may_have(const core::owner_id& id, std::uint32_t units) {
  std::uint64_t taken = used();
  for (const auto& one : queue_) {
    if (one.id == id) break;
    taken += one.units;
  }
  return taken + units <= capacity_;
}

lock_entry::hold& lock_entry::grant(hold what) {
  leave(what.id);
  last_ = what.who;
  return holds_.emplace_back(std::move(what));
}

lock_entry::hold* lock_entry::held_by(const core::owner_id& id) noexcept {
  return found(holds_, [&](const hold& one) { return one.id == id; });
}

lock_entry::hold* lock_entry::held_with(fencing_token token) noexcept {
  return found(holds_, [&](const hold& one) { return one.who.token == token; });
}

lock_entry::place* lock_entry::place_of(const core::owner_id& id) noexcept {
  return found(queue_, [&](const place& one) { return one.id == id; });
}

void lock_entry::leave(const core::owner_id& id) {
  std::erase_if(queue_, [&](const place& one) { return one.id == id; });
}

bool lock_entry::release(const core::owner_id& id) {
  const bool held = std::erase_if(holds_, [&](const hold& one) { return one.id == id; }) > 0;
  tell();
  return held;
}

void lock_entry::downgrade(hold& writer) {
  writer.who.units = 1;
  tell();
}

void lock_entry::resize(std::uint32_t permits) {
  kind_ = {core::lock_kind::form::permits, permits};
  capacity_ = permits;
  kept_ = true;
  tell();
}

void lock_entry::tell() {
  std::uint64_t taken = used();
  for (const auto& one : queue_) {
    taken += one.units;
    // One that wants more than there is by now is told so when it asks.
    if (taken > capacity_ && one.units <= capacity_) return;
    if (one.wait) one.wait->end();
  }
}

core::time_point lock_entry::next_expiry() const noexcept {
  const auto first =
      std::min_element(holds_.begin(), holds_.end(),
                       [](const hold& a, const hold& b) { return a.expires < b.expires; });
  return first == holds_.end() ? core::time_point{} : first->expires;
}

const holder& lock_entry::shown() const noexcept {
  return holds_.empty() ? last_ : holds_.front().who;
}

std::uint32_t lock_entry::used() const noexcept {
  return std::accumulate(holds_.begin(), holds_.end(), std::uint32_t{0},
                         [](std::uint32_t sum, const hold& one) { return sum + one.who.units; });
}

lock_status lock_entry::status(std::string name, core::time_point now) const {
  lock_status status;
  status.name = std::move(name);
  status.waiting = queue_.size();
  for (std::size_t i = 0; i < std::min(queue_.size(), waiters_shown_max); ++i)
    status.waiters.push_back(queue_[i].who);
  if (holds_.empty() && !kept_) return status;
  status.kind = form_of(kind_.what);
  status.capacity = capacity_;
  status.units_in_use = used();
  status.holding = holds_.size();
  for (std::size_t i = 0; i < std::min(holds_.size(), waiters_shown_max); ++i)
    status.holders.push_back(holds_[i].who);
  if (holds_.empty()) return status;
  status.holder = holds_.front().who;
  const auto last =
      std::max_element(holds_.begin(), holds_.end(),
                       [](const hold& a, const hold& b) { return a.expires < b.expires; });
  status.remaining = std::chrono::duration_cast<std::chrono::milliseconds>(last->expires - now);
  return status;
}

}  // namespace holdfast::stores::memory
