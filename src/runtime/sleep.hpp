// Waiting for time to pass, or to be told to stop.
#pragma once

#include <stop_token>

#include "core/types.hpp"

namespace holdfast::runtime {

// Returns at `when`, or at once when stop is requested.
void sleep_until(core::time_point when, const std::stop_token& stop = {});

}  // namespace holdfast::runtime
