// Waiting in the background, for what no caller waits for.
#pragma once

#include <functional>

#include "runtime/background.hpp"
#include "stores/waiting.hpp"

namespace holdfast::stores {

// Calls `begin` in the background, with a caller that stays until nothing is under way any more.
// Never refused, as background::run_always(). The simulator has one of its own, without threads.
void begin_in_background(runtime::background& on, std::function<void(caller&)> begin);

}  // namespace holdfast::stores
