// A store as it is shipped, with somebody who looks on: what the judge must know, and what shipped
// code tells nobody.
#pragma once

#include <functional>
#include <memory>

#include "core/types.hpp"
#include "stores/store.hpp"

namespace holdfast::sim {

// All of it is told before the client hears.
struct store_observer {
  // The attempt, or the release of a lease, has ended so that the store never has it again for this
  // id, if nothing of it is on its way. `since_asked`: whether anything was when that was begun.
  std::function<void(const core::owner_id&)> over;
  // Whether something of this id is on its way.
  std::function<bool(const core::owner_id&)> may_arrive;
  std::function<void(const core::owner_id&, core::time_point sent)> renewed;
  std::function<void(const core::owner_id&, loss why)> refused;
  std::function<void(const core::owner_id&, const char* what)> trace;
};

[[nodiscard]] std::unique_ptr<stores::store> observe(std::unique_ptr<stores::store> store,
                                                     store_observer tell);
// The lock beneath.
[[nodiscard]] const stores::store_lock& observed(const stores::store_lock& lock);

}  // namespace holdfast::sim
