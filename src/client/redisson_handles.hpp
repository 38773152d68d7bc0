// What handles on Redisson's locks do alike.
#pragma once

#include <string_view>

#include <holdfast/client.hpp>
#include <holdfast/mutex.hpp>
#include <holdfast/options.hpp>
#include <holdfast/status.hpp>

#include "client/client_state.hpp"
#include "client/mutex_state.hpp"

namespace holdfast::redisson {

// All throw: errc::invalid_argument of an object that was moved from, errc::forked in a child.
[[nodiscard]] detail::client_state& usable(const client& on);
[[nodiscard]] const detail::mutex_state& state_of(const mutex& lock);
// A lock of that kind, or the writing side of it.
[[nodiscard]] mutex open(client& on, std::string_view name, const lock_options& options,
                         core::lock_kind kind);
[[nodiscard]] lock_status status_of(const mutex& lock);
[[nodiscard]] bool force_unlock(const mutex& lock);

}  // namespace holdfast::redisson
