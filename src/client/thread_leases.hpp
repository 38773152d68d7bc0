// Leases that belong to the thread that got them, as the std lock types have it.
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include <holdfast/lease.hpp>

namespace holdfast::detail {

// Thread-safe. By thread, because a holder that was overtaken still calls unlock(), and that must
// not release its successor's lease.
class thread_leases {
 public:
  // The calling thread's; null if it has none. Valid until this thread puts or takes one.
  [[nodiscard]] lease* mine() {
    const std::lock_guard guard{m_};
    const auto found = all_.find(std::this_thread::get_id());
    return found == all_.end() ? nullptr : &found->second;
  }
  [[nodiscard]] bool hold() {
    const auto* one = mine();
    return one != nullptr && one->held();
  }
  // One that the thread had before is over: it is replaced.
  void put(lease one) {
    const std::lock_guard guard{m_};
    all_.insert_or_assign(std::this_thread::get_id(), std::move(one));
  }
  [[nodiscard]] std::optional<lease> take() {
    const std::lock_guard guard{m_};
    const auto found = all_.find(std::this_thread::get_id());
    if (found == all_.end()) return std::nullopt;
    std::optional<lease> one{std::move(found->second)};
    all_.erase(found);
    return one;
  }

 private:
  std::mutex m_;
  std::map<std::thread::id, lease> all_;  // protected by m_
};

}  // namespace holdfast::detail
