// From one set of nodes to another, while clients run.
#pragma once

#include <holdfast/result.hpp>

#include "core/types.hpp"
#include "stores/redlock/node_set.hpp"

namespace holdfast::stores::redlock {

// core/set_change.hpp says when that is safe. Nothing is changed if it is not. Stopped half-way it
// is finished by doing it again: every node is changed in one script, which knows where it was.
[[nodiscard]] result<void> move_set(const node_set& from, const node_set& to,
                                    core::time_point until);

}  // namespace holdfast::stores::redlock
