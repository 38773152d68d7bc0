// A status as users see it.
#pragma once

#include <holdfast/status.hpp>

namespace holdfast::detail {

// Of a lock that one may hold, stores say only who has it.
inline lock_status as_users_see_it(lock_status status) {
  if (status.kind == lock_status::form::mutex && status.holder && status.holders.empty()) {
    status.units_in_use = 1;
    status.holding = 1;
    status.holders.push_back(*status.holder);
  }
  return status;
}

}  // namespace holdfast::detail
