#include "client/cohort.hpp"

#include <algorithm>

#include "client/lease_state.hpp"
#include "runtime/clock.hpp"

namespace holdfast::detail {

cohort::place cohort::enter(const lock_terms& terms, core::time_point until,
                            const std::stop_token& stop, const std::stop_token& also,
                            const std::function<void()>& waits) {
  waiter mine;
  mine.terms = &terms;
  {
    const std::lock_guard guard{m_};
    if (!taken_) {
      taken_ = true;
      return {role::asks, nullptr};
    }
    queue_.push_back(&mine);
  }
  waits();
  const auto wake = [&] {
    const std::lock_guard guard{m_};
    mine.stopped = true;
    mine.wake.notify_one();
  };
  const std::stop_callback on_stop{stop, wake};
  const std::stop_callback on_also{also, wake};
  std::unique_lock lock{m_};
  while (!mine.done && !mine.stopped) {
    const auto now = runtime::now();
    if (now >= until) break;
    mine.wake.wait_for(lock, std::min<core::duration>(until - now, std::chrono::hours{1}));
  }
  // What came together with the stop or the end of the wait is still ours, to use or to pass on.
  if (!mine.done) std::erase(queue_, &mine);
  return std::move(mine.got);
}

void cohort::leave() {
  const std::lock_guard guard{m_};
  taken_ = !queue_.empty();
  if (!taken_) return;
  auto* next = queue_.front();
  queue_.pop_front();
  next->got = {role::asks, nullptr};
  next->done = true;
  next->wake.notify_one();
}

bool cohort::pass(const std::string& label,
                  const std::function<std::shared_ptr<lease_state>(const lock_terms&)>& make) {
  const std::lock_guard guard{m_};
  if (queue_.empty() || queue_.front()->terms->label != label) return false;
  auto lease = make(*queue_.front()->terms);
  if (!lease) return false;
  auto* next = queue_.front();
  queue_.pop_front();
  next->got = {role::handed, std::move(lease)};
  next->done = true;
  next->wake.notify_one();
  return true;
}

std::size_t cohort::waiting() {
  const std::lock_guard guard{m_};
  return queue_.size();
}

}  // namespace holdfast::detail
