#include "named_lock.hpp"

#include <utility>

namespace holdfast::cli {
namespace {

std::variant<mutex, redisson::rlock> open(client& store, const std::string& name,
                                          lock_format format, lock_options how) {
  switch (format) {
    case lock_format::redisson:
      return redisson::rlock{store, name, std::move(how)};
    case lock_format::redisson_fenced:
      return redisson::rlock{redisson::rfenced_lock{store, name, std::move(how)}};
    case lock_format::holdfast:
      break;
  }
  return store.mutex(name, std::move(how));
}

}  // namespace

named_lock::named_lock(client& store, const std::string& name, lock_format format, lock_options how)
    : store_{store}, lock_{open(store, name, format, std::move(how))} {}

const std::string& named_lock::name() const noexcept {
  const auto* const ours = std::get_if<mutex>(&lock_);
  return ours != nullptr ? ours->name() : std::get_if<redisson::rlock>(&lock_)->name();
}

std::optional<lease> named_lock::try_acquire(std::chrono::nanoseconds wait,
                                             const std::stop_token& stop) {
  return std::visit([&](auto& lock) { return lock.try_acquire(wait, stop); }, lock_);
}

lease named_lock::adopt(const lease_ticket& ticket) {
  return std::visit([&](auto& lock) { return lock.adopt(ticket); }, lock_);
}

lock_status named_lock::status() {
  if (auto* const redissons = std::get_if<redisson::rlock>(&lock_)) return redissons->status();
  return store_.status(name());
}

}  // namespace holdfast::cli
