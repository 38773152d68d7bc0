// What a store must be able to do with a number that is counted and waited for. As with locks:
// nothing throws or blocks; what takes a `caller` ends by `until`, and then calls `done` once.
#pragma once

#include <functional>
#include <memory>

#include <holdfast/result.hpp>

#include "core/counter.hpp"
#include "core/types.hpp"
#include "stores/waiting.hpp"

namespace holdfast::stores {

// One request, asked as often as it takes. Not thread-safe, but for wake(): one call is under way
// at a time, and the attempt outlives it.
class counter_attempt {
 public:
  using on_answer = std::function<void(result<core::counter_answer>)>;

  counter_attempt() = default;
  counter_attempt(const counter_attempt&) = delete;
  counter_attempt& operator=(const counter_attempt&) = delete;
  virtual ~counter_attempt() = default;

  // Where core::may_repeat() says so, asking twice is answered once.
  virtual void ask(core::time_point until, caller& by, on_answer done) = 0;
  // After an answer that was not `done`: ends when asking again may be answered differently, at
  // `until`, or by wake().
  virtual void wait(core::time_point until, caller& by, std::function<void()> done) = 0;
  // Ends the wait that is under way, or the next. From any thread, if the caller is a thread that
  // waits; in turn with the caller otherwise.
  virtual void wake() = 0;
};

// Lives as long as an attempt of it.
class store_counter {
 public:
  store_counter() = default;
  store_counter(const store_counter&) = delete;
  store_counter& operator=(const store_counter&) = delete;
  virtual ~store_counter() = default;

  // `may_wait`: wait() may be called, so see to it that changes are told.
  [[nodiscard]] virtual std::unique_ptr<counter_attempt> begin(core::counter_request what,
                                                               bool may_wait) = 0;
};

}  // namespace holdfast::stores
