// Renewal: one committed change that finds every lease's node in place.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "stores/store.hpp"
#include "stores/zookeeper/contender.hpp"

namespace holdfast::stores::zookeeper {

// A request is at most 1 MiB to the server, and a path 2 KiB to us.
inline constexpr std::size_t renewals_per_call = 200;

// One answer for each, in order. Null: not held any more.
void renew(const std::shared_ptr<connection>& on, std::vector<std::shared_ptr<contender>> all,
           std::function<void(result<std::vector<renewal>>)> done);

}  // namespace holdfast::stores::zookeeper
