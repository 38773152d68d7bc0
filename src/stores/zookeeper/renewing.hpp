// Renewal: one committed change that finds every lease's node in place.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "stores/store.hpp"
#include "stores/zookeeper/claim.hpp"
#include "stores/zookeeper/connection.hpp"

namespace holdfast::stores::zookeeper {

inline constexpr std::size_t renewals_per_call = 200;
// A request is at most 1 MiB to the server, and a path 2 KiB to us.
inline constexpr std::size_t checks_per_request = 400;

// One answer for each, in order. Null: not held any more.
void renew(const std::shared_ptr<connection>& on, std::vector<std::shared_ptr<claim>> all,
           std::function<void(result<std::vector<renewal>>)> done);

}  // namespace holdfast::stores::zookeeper
