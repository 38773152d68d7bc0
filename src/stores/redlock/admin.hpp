// What a person decides about the nodes of a set.
#pragma once

#include <holdfast/result.hpp>

#include "core/types.hpp"
#include "stores/redlock/node_set.hpp"

namespace holdfast::stores::redlock {

// Lets every node vote at once. The caller vouches that no lock is held; every node has to answer.
[[nodiscard]] result<void> init_set(const node_set& set, core::time_point until);

}  // namespace holdfast::stores::redlock
