// Attempts that have their lock, and for which a message may still come.
#pragma once

#include <map>

#include "core/types.hpp"

namespace holdfast::core {

// A grant that is sent and an answer that says the same cross on their way: the attempt takes the
// one that comes first, and the other must not be mistaken for a grant that nobody wants, which
// would be given back and so take the lock from its holder.
//
// A value type.
class answered_grants {
 public:
  static constexpr std::size_t remembered_max = 1024;

  // An attempt learnt of this grant by asking. False: that is one too many to remember, and the
  // messages that are still to come must be lost, with their connection; then clear().
  [[nodiscard]] bool add(const owner_id& id, fencing_token token) {
    tokens_.emplace(id, token);
    return tokens_.size() <= remembered_max;
  }
  // Whether a message about this grant is about one of those. Once: no other will come for it.
  [[nodiscard]] bool knows(const owner_id& id, fencing_token token) {
    const auto found = tokens_.find(id);
    if (found == tokens_.end()) return false;
    // An older one was granted, not taken up, and given to others since: the newer is still to
    // come.
    if (token >= found->second) tokens_.erase(found);
    return true;
  }
  void clear() noexcept { tokens_.clear(); }

 private:
  std::map<owner_id, fencing_token> tokens_;
};

}  // namespace holdfast::core
