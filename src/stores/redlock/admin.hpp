// What a person does with the nodes of a set, without a client. holdfast/redlock.hpp has the terms.
#pragma once

#include <vector>

#include <holdfast/redlock.hpp>
#include <holdfast/result.hpp>

#include "core/types.hpp"
#include "stores/redlock/redlock_store.hpp"

namespace holdfast::stores::redlock {

// What each node is. Changes nothing.
[[nodiscard]] std::vector<holdfast::redlock::node_status> look_at_set(redlock_config of,
                                                                      core::time_point until);

// Lets every node vote at once. The caller vouches that no lock is held; every node has to answer.
[[nodiscard]] result<void> init_set(redlock_config of, core::time_point until);

// From one list of nodes to another, while clients run. core/set_change.hpp says when that is safe.
// Nothing is changed if it is not. Stopped half-way it is finished by doing it again: every node is
// changed in one script, which knows where it was. Nodes of `to` without credentials have those of
// `from`.
[[nodiscard]] result<void> move_set(redlock_config from, redlock_config to, core::time_point until);

}  // namespace holdfast::stores::redlock
