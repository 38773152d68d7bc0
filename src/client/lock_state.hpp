// What all handles of one client on one name share.
#pragma once

#include <memory>
#include <string>

#include "client/cohort.hpp"
#include "client/recursive_leases.hpp"
#include "client/thread_leases.hpp"
#include "client/write_depths.hpp"
#include "stores/store.hpp"

namespace holdfast::detail {

struct lock_state {
  lock_state(std::string called, const core::lock_kind& of,
             std::shared_ptr<stores::store_lock> in_store)
      : name{std::move(called)}, kind{of}, store{std::move(in_store)} {}

  // A client knows a lock by its name and kind.
  [[nodiscard]] static std::string registered_as(std::string_view name,
                                                 const core::lock_kind& kind) {
    return std::to_string(static_cast<int>(kind.what)) + ',' + std::to_string(kind.permits) + ',' +
           std::string{name};
  }

  const std::string name;
  const core::lock_kind kind;
  const std::shared_ptr<stores::store_lock> store;

  cohort here;

  // Held through lock() and friends, and through lock_shared() and friends.
  thread_leases by_thread;
  thread_leases readers;
  // Held through a recursive_mutex.
  recursive_leases recursive;
  write_depths writes;  // of those, to write, where they may be either
};

}  // namespace holdfast::detail
