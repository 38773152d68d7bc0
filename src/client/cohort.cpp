#include "client/cohort.hpp"

#include <algorithm>
#include <optional>
#include <thread>
#include <vector>

#include "client/lease_state.hpp"
#include "runtime/clock.hpp"

namespace holdfast::detail {

cohort::place cohort::enter(const lock_terms& terms, core::time_point until,
                            const std::stop_token& stop, const std::function<void()>& waits) {
  waiter mine;
  mine.terms = &terms;
  bool polls = false;
  {
    const std::lock_guard guard{m_};
    if (closed_) return {role::gave_up};
    if (!taken_) {
      taken_ = true;
      return {role::asks};
    }
    mine.since = runtime::now();
    auto& joined = comes_back(mine.since) ? back_again_ : queue_;
    joined.push_back(&mine);
    const bool first = joined.size() == 1 && (&joined == &back_again_ || back_again_.empty());
    polls = first && polling_.worth_it();
  }
  waits();
  // Most waits cannot be stopped, and then there is nothing to register.
  std::optional<std::stop_callback<std::function<void()>>> on_stop;
  if (stop.stop_possible()) on_stop.emplace(stop, [&mine] { mine.sleeper->unpark(); });
  if (polls) poll(mine);
  while (!mine.done && !stop.stop_requested() && runtime::now() < until)
    mine.sleeper->park(until);
  if (!mine.done) {
    const std::lock_guard guard{m_};
    // What came together with the stop or the end of the wait is still ours, to use or to pass on.
    if (!mine.done) {
      if (std::erase(queue_, &mine) == 0) std::erase(back_again_, &mine);
      mine.got.met = met_;
    }
  }
  return std::move(mine.got);
}

bool cohort::comes_back(core::time_point now) const {
  const auto* me = runtime::parker::of_this_thread().get();
  const bool had_it = std::find(had_it_.begin(), had_it_.end(), me) != had_it_.end();
  return had_it && polling_.pays() && now - turn_began_ < core::cohort_return_max;
}

// The first in line is awake when its turn comes, if turns are short: waking a thread takes longer
// than many a critical section.
void cohort::poll(waiter& mine) {
  const auto end = runtime::now() + core::hand_over_poll;
  while (!mine.done && runtime::now() < end)
    std::this_thread::yield();  // to the holder, if it shares our core
  const std::lock_guard guard{m_};
  polling_.on_polled(mine.done);
}

std::shared_ptr<runtime::parker> cohort::serve(waiter& one, place what) {
  auto sleeper = one.sleeper;
  one.got = std::move(what);
  one.done = true;  // and from here on it may be gone
  return sleeper;
}

std::shared_ptr<runtime::parker> cohort::serve_first(line& from, place what) {
  auto* next = from.front();
  from.pop_front();
  return serve(*next, std::move(what));
}

void cohort::close() {
  std::vector<std::shared_ptr<runtime::parker>> woken;
  {
    const std::lock_guard guard{m_};
    closed_ = true;
    for (auto* from : {&back_again_, &queue_}) {
      while (!from->empty())
        woken.push_back(serve_first(*from, {role::gave_up}));
    }
  }
  for (const auto& one : woken)
    one->unpark();
}

void cohort::on_met(std::optional<core::busy> other) {
  const std::lock_guard guard{m_};
  met_ = std::move(other);
}

void cohort::leave() {
  std::shared_ptr<runtime::parker> next;
  {
    const std::lock_guard guard{m_};
    met_.reset();
    queue_.insert(queue_.end(), back_again_.begin(), back_again_.end());
    back_again_.clear();
    had_it_ = {};
    taken_ = !queue_.empty();
    if (taken_) next = serve_first(queue_, {role::asks});
  }
  if (next) next->unpark();
}

void cohort::leave(const failure& why, core::duration limit) {
  std::vector<std::shared_ptr<runtime::parker>> woken;
  {
    const std::lock_guard guard{m_};
    const auto now = runtime::now();
    for (auto* from : {&back_again_, &queue_}) {
      std::erase_if(*from, [&](waiter* one) {
        if (core::after(one->since, limit) > now) return false;
        woken.push_back(serve(*one, {role::failed, nullptr, why}));
        return true;
      });
    }
  }
  for (const auto& one : woken)
    one->unpark();
  leave();
}

bool cohort::pass(const std::string& label,
                  const std::function<std::shared_ptr<lease_state>(const lock_terms&)>& make) {
  std::shared_ptr<runtime::parker> next;
  {
    const std::lock_guard guard{m_};
    auto& from = back_again_.empty() ? queue_ : back_again_;
    if (from.empty() || from.front()->terms->label != label) return false;
    auto lease = make(*from.front()->terms);
    if (!lease) return false;
    if (had_it_[0] == nullptr) turn_began_ = runtime::now();
    had_it_ = {runtime::parker::of_this_thread().get(), from.front()->sleeper.get()};
    next = serve_first(from, {role::handed, std::move(lease), {}});
  }
  next->unpark();
  return true;
}

std::size_t cohort::waiting() {
  const std::lock_guard guard{m_};
  return queue_.size() + back_again_.size();
}

}  // namespace holdfast::detail
