// Attempts that have their lock, and for which a late message may still come.
#pragma once

#include <algorithm>
#include <deque>

#include "core/types.hpp"

namespace holdfast::core {

// A grant that is sent and an answer that says the same cross on their way: the attempt takes the
// one that comes first, and the other must not be mistaken for a grant that nobody wants, which
// would be given back and so take the lock from its holder.
//
// A value type. Remembers the latest so many: a message that is later than those was lost.
class settled_ids {
 public:
  static constexpr std::size_t remembered_max = 1024;

  void add(const owner_id& id) {
    ids_.push_back(id);
    if (ids_.size() > remembered_max) ids_.pop_front();
  }
  [[nodiscard]] bool contains(const owner_id& id) const noexcept {
    return std::find(ids_.begin(), ids_.end(), id) != ids_.end();
  }

 private:
  std::deque<owner_id> ids_;
};

}  // namespace holdfast::core
