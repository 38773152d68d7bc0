#include "stores/delayed_task.hpp"

#include <utility>

#include "runtime/clock.hpp"

namespace holdfast::stores {

void delayed_task::run_later(std::weak_ptr<const void> owner) {
  const auto when = core::after(runtime::now(), delay_);
  const bool planned = on_.run_at(when, [this, owner = std::move(owner)] {
    const auto alive = owner.lock();
    if (!alive) return;
    planned_ = false;
    if (work_() && !planned_.exchange(true)) run_later(owner);
  });
  if (!planned) planned_ = false;
}

}  // namespace holdfast::stores
