// Work that is done a while after it was asked for, in the background.
#pragma once

#include <atomic>
#include <functional>
#include <memory>

#include "core/types.hpp"
#include "runtime/background.hpp"

namespace holdfast::stores {

// Thread-safe. Once for all who ask meanwhile: a busy client that asks with every request has the
// work done as seldom as `delay` says.
class delayed_task {
 public:
  // `work` says whether it is to be done again, after as long.
  delayed_task(runtime::background& on, core::duration delay, std::function<bool()> work)
      : on_{on}, delay_{delay}, work_{std::move(work)} {}
  delayed_task(const delayed_task&) = delete;
  delayed_task& operator=(const delayed_task&) = delete;

  // Nothing is done if `owner`, which holds this, is gone by then.
  template <class Owner>
  void plan(Owner& owner) {
    plan_for([&owner] { return owner.weak_from_this(); });
  }
  // The same with what gives the owner, called when there is something to plan.
  template <class Owner>
  void plan_for(const Owner& owner) {
    if (!planned_.load() && !planned_.exchange(true)) run_later(owner());
  }

 private:
  void run_later(std::weak_ptr<const void> owner);

  runtime::background& on_;
  const core::duration delay_;
  const std::function<bool()> work_;
  std::atomic<bool> planned_{false};
};

}  // namespace holdfast::stores
