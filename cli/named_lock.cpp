#include "named_lock.hpp"

#include <utility>

namespace holdfast::cli {
namespace {

using kind = lock_choice::kind;

using any_lock =
    std::variant<mutex, shared_mutex, semaphore, redisson::rlock, redisson::rread_write_side>;

any_lock open(client& store, const std::string& name, const lock_choice& choice, lock_options how) {
  switch (choice.what) {
    case kind::reader:
    case kind::writer:
      return store.shared_mutex(name, std::move(how));
    case kind::permits:
      return store.semaphore(name, choice.there_are, std::move(how));
    case kind::redisson:
      return redisson::rlock{store, name, std::move(how)};
    case kind::redisson_fenced:
      return redisson::rlock{redisson::rfenced_lock{store, name, std::move(how)}};
    case kind::redisson_fair:
      return redisson::rlock{redisson::rfair_lock{store, name, std::move(how)}};
    case kind::redisson_reader:
      return redisson::rread_write_lock{store, name, std::move(how)}.read_lock();
    case kind::redisson_writer:
      return redisson::rread_write_lock{store, name, std::move(how)}.write_lock();
    case kind::mutex:
      break;
  }
  return store.mutex(name, std::move(how));
}

}  // namespace

std::string other_format_hint(const error& problem, const lock_choice& choice) {
  const bool wrong_type = problem.code() == make_error_code(errc::wrong_type);
  if (!wrong_type || choice.what != kind::mutex) return {};
  return " (if Java programs hold it through Redisson: --format redisson)";
}

named_lock::named_lock(client& store, const std::string& name, const lock_choice& choice,
                       lock_options how)
    : store_{store}, choice_{choice}, lock_{open(store, name, choice, std::move(how))} {}

const std::string& named_lock::name() const noexcept {
  return std::visit([](const auto& lock) -> const std::string& { return lock.name(); }, lock_);
}

std::optional<lease> named_lock::try_acquire(std::chrono::nanoseconds wait,
                                             const std::stop_token& stop) {
  if (choice_.what == kind::reader) {
    return std::get<shared_mutex>(lock_).try_acquire_shared(wait, stop);
  }
  if (choice_.what == kind::permits) {
    return std::get<semaphore>(lock_).try_acquire(choice_.wanted, wait, stop);
  }
  return std::visit([&](auto& lock) { return lock.try_acquire(wait, stop); }, lock_);
}

lease named_lock::adopt(const lease_ticket& ticket) {
  return std::visit([&](auto& lock) { return lock.adopt(ticket); }, lock_);
}

lock_status named_lock::status() {
  if (auto* const redissons = std::get_if<redisson::rlock>(&lock_)) return redissons->status();
  if (std::holds_alternative<redisson::rread_write_side>(lock_)) {
    return redisson::rread_write_lock{store_, name()}.status();
  }
  return store_.status(name());
}

bool named_lock::take_away(fencing_token token) {
  if (auto* const redissons = std::get_if<redisson::rlock>(&lock_)) {
    return redissons->force_unlock();
  }
  if (std::holds_alternative<redisson::rread_write_side>(lock_)) {
    return redisson::rread_write_lock{store_, name()}.force_unlock();
  }
  store_.break_lock(name(), token);
  return true;
}

}  // namespace holdfast::cli
