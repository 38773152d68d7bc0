// What all handles of one client on one name share.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include <holdfast/lease.hpp>

#include "client/cohort.hpp"
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

  std::mutex m;
  // Protected by m. Leases held through lock() and friends, by thread. By thread, because a holder
  // that was overtaken still calls unlock(), and that must not release its successor's lease.
  std::map<std::thread::id, lease> by_thread;
  // Of a re-entrant lock: how often a thread holds it beyond the first time.
  std::map<std::thread::id, unsigned> again_by_thread;
};

}  // namespace holdfast::detail
