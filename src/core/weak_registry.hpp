// What is open by name, for as long as it is used.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace holdfast::core {

// Not thread-safe. Names that nobody uses any more are dropped when there are twice as many as were
// in use at the last such look: a program may open a lock for each order.
template <class T>
class weak_registry {
 public:
  [[nodiscard]] std::shared_ptr<T> find(const std::string& name) const {
    const auto known = known_.find(name);
    return known == known_.end() ? nullptr : known->second.lock();
  }

  void put(const std::string& name, const std::shared_ptr<T>& what) {
    if (known_.size() >= purge_at_) {
      std::erase_if(known_, [](const auto& one) { return one.second.expired(); });
      purge_at_ = std::max(purge_at_min, 2 * known_.size());
    }
    known_[name] = what;
  }

  [[nodiscard]] std::vector<std::shared_ptr<T>> all() const {
    std::vector<std::shared_ptr<T>> in_use;
    for (const auto& [name, known] : known_) {
      if (auto one = known.lock()) in_use.push_back(std::move(one));
    }
    return in_use;
  }

 private:
  static constexpr std::size_t purge_at_min = 1024;
  std::unordered_map<std::string, std::weak_ptr<T>> known_;
  std::size_t purge_at_ = purge_at_min;
};

}  // namespace holdfast::core
