// What the locks of one client share: its session, and what it holds.
#pragma once

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "stores/store.hpp"
#include "stores/zookeeper/call.hpp"
#include "stores/zookeeper/contender.hpp"

namespace holdfast::stores::zookeeper {

// Thread-safe.
class holdings {
 public:
  void add(const std::shared_ptr<contender>& one) {
    const std::lock_guard guard{m_};
    all_[one->id()] = one;
  }
  // Null: not held here.
  [[nodiscard]] std::shared_ptr<contender> find(const core::owner_id& id) const {
    const std::lock_guard guard{m_};
    const auto found = all_.find(id);
    return found == all_.end() ? nullptr : found->second;
  }
  [[nodiscard]] std::shared_ptr<contender> take(const core::owner_id& id) {
    const std::lock_guard guard{m_};
    const auto found = all_.find(id);
    if (found == all_.end()) return nullptr;
    auto one = std::move(found->second);
    all_.erase(found);
    return one;
  }
  [[nodiscard]] std::vector<core::owner_id> held_in(const session* which) const {
    std::vector<core::owner_id> ids;
    const std::lock_guard guard{m_};
    for (const auto& [id, one] : all_) {
      if (one->held().in.get() == which) ids.push_back(id);
    }
    return ids;
  }

 private:
  mutable std::mutex m_;
  std::map<core::owner_id, std::shared_ptr<contender>> all_;  // protected by m_
};

// Thread-safe. Releases that nobody waits for.
class releases {
 public:
  void begin() {
    const std::lock_guard guard{m_};
    ++under_way_;
  }
  void end() {
    const std::lock_guard guard{m_};
    if (--under_way_ == 0) none_.notify_all();
  }
  void await_none(std::chrono::nanoseconds at_most) {
    std::unique_lock lock{m_};
    none_.wait_for(lock, at_most, [this] { return under_way_ == 0; });
  }

 private:
  std::mutex m_;
  std::condition_variable none_;
  std::size_t under_way_ = 0;  // protected by m_
};

struct shared {
  std::shared_ptr<connection> at;
  std::shared_ptr<runtime::background> background;
  std::string chroot;
  store_events events{};
  holdings held{};
  releases leaving{};
  waiting_calls calls{};
};

}  // namespace holdfast::stores::zookeeper
