// A caller that waits for what goes on on the C library's thread.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include <holdfast/result.hpp>

#include "stores/pause.hpp"

namespace holdfast::stores::zookeeper {

// Thread-safe. The callers that wait now, so that a client which is destroyed can send them away.
class waiting_calls {
 public:
  void add(const std::shared_ptr<pause>& one) {
    const std::lock_guard guard{m_};
    std::erase_if(all_, [](const auto& other) {
      const auto alive = other.lock();
      return !alive || alive->is_over();
    });
    all_.push_back(one);
    if (closed_) one->end();
  }
  void close() {
    const std::lock_guard guard{m_};
    closed_ = true;
    for (const auto& one : all_) {
      if (const auto alive = one.lock()) alive->end();
    }
  }

 private:
  std::mutex m_;
  std::vector<std::weak_ptr<pause>> all_;  // protected by m_
  bool closed_ = false;                    // protected by m_
};

// Calls `done` in turn with `by`: with what `begin(told)` tells, on whatever thread, or at `until`
// with what late() says. What was begun goes on then, and tells nobody.
template <class Result, class Begin, class Late>
void await(waiting_calls& calls, core::time_point until, caller& by, Begin begin, Late late,
           std::function<void(Result)> done) {
  struct answer {
    std::mutex m;
    std::optional<Result> got;
  };
  const auto box = std::make_shared<answer>();
  auto wait = std::make_shared<pause>(until, [box, late, done = std::move(done)] {
    std::optional<Result> got;
    {
      const std::lock_guard guard{box->m};
      got.swap(box->got);
    }
    done(got ? std::move(*got) : Result{tl::unexpect, late()});
  });
  calls.add(wait);
  begin([box, weak = std::weak_ptr<pause>{wait}](Result got) {
    {
      const std::lock_guard guard{box->m};
      box->got.emplace(std::move(got));
    }
    if (const auto alive = weak.lock()) alive->end();
  });
  by.wait_for(std::move(wait));
}

}  // namespace holdfast::stores::zookeeper
