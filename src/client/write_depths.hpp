// How often each thread holds a lock to write, of the times that it holds it.
#pragma once

#include <cstddef>
#include <map>
#include <mutex>
#include <thread>

namespace holdfast::detail {

// Thread-safe. A thread's own number is changed by that thread only.
class write_depths {
 public:
  [[nodiscard]] std::size_t mine() {
    const std::lock_guard guard{m_};
    const auto found = all_.find(std::this_thread::get_id());
    return found == all_.end() ? 0 : found->second;
  }
  void add() {
    const std::lock_guard guard{m_};
    ++all_[std::this_thread::get_id()];
  }
  // Only after add().
  void drop() {
    const std::lock_guard guard{m_};
    const auto found = all_.find(std::this_thread::get_id());
    if (--found->second == 0) all_.erase(found);
  }

 private:
  std::mutex m_;
  std::map<std::thread::id, std::size_t> all_;  // protected by m_; none is 0
};

}  // namespace holdfast::detail
