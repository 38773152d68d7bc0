// Waiting in the background, for what no caller waits for.
#pragma once

#include <functional>

#include "core/types.hpp"
#include "runtime/background.hpp"
#include "stores/waiting.hpp"

namespace holdfast::stores {

// Calls `begin` in the background, with a caller that stays until nothing is under way any more.
// Never refused, as background::run_always(). The simulator has one of its own, without threads.
void begin_in_background(runtime::background& on, std::function<void(caller&)> begin);
// The same at `when`, if that is not refused, as background::run_at().
[[nodiscard]] bool begin_in_background_at(runtime::background& on, core::time_point when,
                                          std::function<void(caller&)> begin);

}  // namespace holdfast::stores
