#include "client/cohort.hpp"

#include <algorithm>
#include <optional>
#include <thread>
#include <vector>

#include "client/lease_state.hpp"
#include "runtime/clock.hpp"

namespace holdfast::detail {

// One place in the queue.
class cohort::waiter final : public stores::pause {
 public:
  waiter(cohort& in, const lock_terms& wanted, core::time_point until, bool polls_first,
         on_place done)
      : pause{until, [this] { leave(); }},
        terms{wanted},
        since{runtime::now()},
        in_{in},
        polls_{polls_first},
        done_{std::move(done)} {}

  void wait() override {
    if (polls_) in_.poll(*this);
    if (served) return finish();
    pause::wait();
  }

  const lock_terms& terms;
  const core::time_point since;
  place got{role::gave_up};
  // Set last: with it, no mutex is needed to read the rest.
  std::atomic<bool> served{false};

 private:
  void leave() {
    const auto done = std::move(done_);
    done(in_.leave_queue(*this));
  }

  cohort& in_;
  const bool polls_;
  on_place done_;
};

std::shared_ptr<stores::pause> cohort::enter(const lock_terms& terms, core::time_point until,
                                             on_place done) {
  std::shared_ptr<waiter> mine;
  auto now_at = role::gave_up;
  {
    const std::lock_guard guard{m_};
    if (!closed_ && taken_) {
      const bool returns = comes_back(runtime::now());
      auto& joined = returns ? back_again_ : queue_;
      const bool first = joined.empty() && (returns || back_again_.empty());
      mine = std::make_shared<waiter>(*this, terms, until, first && polling_.worth_it(),
                                      std::move(done));
      joined.push_back(mine);
    } else if (!closed_) {
      taken_ = true;
      now_at = role::asks;
    }
  }
  if (!mine) done({now_at});
  return mine;
}

// Of a waiter whose wait is over. What came together with the end of the wait still belongs to it,
// to use or to pass on.
cohort::place cohort::leave_queue(waiter& mine) {
  if (!mine.served) {
    const std::lock_guard guard{m_};
    if (!mine.served) {
      const auto is_mine = [&](const auto& one) { return one.get() == &mine; };
      if (std::erase_if(queue_, is_mine) == 0) std::erase_if(back_again_, is_mine);
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
void cohort::poll(const waiter& mine) {
  const auto end = runtime::now() + core::hand_over_poll;
  while (!mine.served && runtime::now() < end)
    std::this_thread::yield();  // to the holder, if it shares our core
  const std::lock_guard guard{m_};
  polling_.on_polled(mine.served);
}

std::shared_ptr<cohort::waiter> cohort::serve(std::shared_ptr<waiter> one, place what) {
  one->got = std::move(what);
  one->served = true;
  return one;
}

std::shared_ptr<cohort::waiter> cohort::serve_first(waiters& from, place what) {
  auto next = std::move(from.front());
  from.pop_front();
  return serve(std::move(next), std::move(what));
}

void cohort::close() {
  std::vector<std::shared_ptr<waiter>> served;
  {
    const std::lock_guard guard{m_};
    closed_ = true;
    for (auto* from : {&back_again_, &queue_}) {
      while (!from->empty())
        served.push_back(serve_first(*from, {role::gave_up}));
    }
  }
  for (const auto& one : served)
    one->end();
}

void cohort::on_met(std::optional<core::busy> other) {
  const std::lock_guard guard{m_};
  met_ = std::move(other);
}

void cohort::leave() {
  std::shared_ptr<waiter> next;
  {
    const std::lock_guard guard{m_};
    met_.reset();
    queue_.insert(queue_.end(), back_again_.begin(), back_again_.end());
    back_again_.clear();
    had_it_ = {};
    taken_ = !queue_.empty();
    if (taken_) next = serve_first(queue_, {role::asks});
  }
  if (next) next->end();
}

void cohort::leave(const failure& why, core::duration limit) {
  std::vector<std::shared_ptr<waiter>> served;
  {
    const std::lock_guard guard{m_};
    const auto now = runtime::now();
    for (auto* from : {&back_again_, &queue_}) {
      std::erase_if(*from, [&](const auto& one) {
        if (core::after(one->since, limit) > now) return false;
        served.push_back(serve(one, {role::failed, nullptr, why}));
        return true;
      });
    }
  }
  for (const auto& one : served)
    one->end();
  leave();
}

bool cohort::pass(const std::string& label,
                  const std::function<std::shared_ptr<lease_state>(const lock_terms&)>& make) {
  std::shared_ptr<waiter> next;
  {
    const std::lock_guard guard{m_};
    auto& from = back_again_.empty() ? queue_ : back_again_;
    if (from.empty() || from.front()->terms.label != label) return false;
    auto lease = make(from.front()->terms);
    if (!lease) return false;
    if (had_it_[0] == nullptr) turn_began_ = runtime::now();
    had_it_ = {runtime::parker::of_this_thread().get(), from.front()->thread().get()};
    next = serve_first(from, {role::handed, std::move(lease), {}});
  }
  next->end();
  return true;
}

std::size_t cohort::waiting() {
  const std::lock_guard guard{m_};
  return queue_.size() + back_again_.size();
}

}  // namespace holdfast::detail
