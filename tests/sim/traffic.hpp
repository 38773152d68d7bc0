// What a client has on its way to its nodes, as seen on the wire: the judge needs to know what may
// still arrive, and shipped code does not keep it.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include "core/types.hpp"

namespace holdfast::sim {

// Something that was sent and may set a lock, or put a waiter into a queue.
struct sent_ask {
  core::owner_id id;
  std::optional<core::owner_id> waiter{};
};

class traffic {
 public:
  void sent(const sent_ask& what) {
    ++under_way_[what.id];
    if (!what.waiter) return;
    waiters_.insert(*what.waiter);
    asked_for_.insert_or_assign(what.id, *what.waiter);
  }
  void answered(const sent_ask& what) { --under_way_[what.id]; }
  // Its connection is gone: it may have arrived, or arrive yet.
  void cut_off(const sent_ask& what) {
    answered(what);
    lingers(what.id);
    if (const auto found = asked_for_.find(what.id); found != asked_for_.end()) {
      lingers(found->second);
    }
  }
  // Nobody sees to it any more that a node hears of its end.
  void lingers(const core::owner_id& id) { lingering_.insert(id); }

  [[nodiscard]] bool knows(const core::owner_id& id) const { return under_way_.contains(id); }
  [[nodiscard]] bool knows_waiter(const core::owner_id& id) const { return waiters_.contains(id); }
  [[nodiscard]] bool may_linger(const core::owner_id& id) const { return lingering_.contains(id); }
  // True if something of it was sent and not answered.
  [[nodiscard]] bool may_arrive(const core::owner_id& id) const {
    const auto found = under_way_.find(id);
    return may_linger(id) || (found != under_way_.end() && found->second > 0);
  }

 private:
  std::map<core::owner_id, int> under_way_;  // every id that ever asked, and how many asks
  std::map<core::owner_id, core::owner_id> asked_for_;  // attempt, and the waiter behind it
  std::set<core::owner_id> waiters_;
  std::set<core::owner_id> lingering_;
};

}  // namespace holdfast::sim
