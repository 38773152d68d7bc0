// One attempt's turn to look at its queue again.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <utility>

#include "stores/pause.hpp"

namespace holdfast::stores::zookeeper {

// Thread-safe. What comes before anybody waits for it is kept.
class turn {
 public:
  // The queue may have moved: a watched node has changed, or watches may have been missed.
  void come() {
    const std::lock_guard guard{m_};
    come_ = true;
    if (wait_) wait_->end();
  }
  // Before the watch is set whose event is waited for.
  void expect() {
    const std::lock_guard guard{m_};
    come_ = false;
  }
  // Ends the wait that is under way, and every later one.
  void stop() {
    const std::lock_guard guard{m_};
    stopped_ = true;
    if (wait_) wait_->end();
  }
  [[nodiscard]] std::shared_ptr<pause> wait(core::time_point until, std::function<void()> done) {
    auto made = std::make_shared<pause>(until, std::move(done));
    const std::lock_guard guard{m_};
    wait_ = made;
    if (come_ || stopped_) made->end();
    return made;
  }

 private:
  std::mutex m_;
  bool come_ = false;
  bool stopped_ = false;
  std::shared_ptr<pause> wait_;
};

}  // namespace holdfast::stores::zookeeper
