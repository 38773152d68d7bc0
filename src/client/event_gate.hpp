// Lets a store's events reach its client until that begins to go.
#pragma once

#include <mutex>
#include <shared_mutex>

namespace holdfast::detail {

// Thread-safe. A store's threads may outlive its client: whatever still refers to one of its locks
// keeps them. close() waits for events that are under way, and none comes after it. An event must
// therefore neither wait for anything nor end the client.
class event_gate {
 public:
  // False: it is closed, and the event did not happen.
  template <class Event>
  bool pass(Event event) {
    const std::shared_lock inside{m_};
    if (open_) event();
    return open_;
  }
  void close() {
    const std::lock_guard alone{m_};
    open_ = false;
  }

 private:
  std::shared_mutex m_;
  bool open_ = true;  // protected by m_
};

}  // namespace holdfast::detail
