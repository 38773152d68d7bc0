// Looking at one server, for `holdfast doctor`.
#pragma once

#include "core/deployment.hpp"
#include "stores/redis/dialer.hpp"
#include "stores/redis/rights.hpp"

namespace holdfast::stores::redis {

// Keys that are looked at one by one.
inline constexpr std::size_t keys_examined_max = 10'000;
// Token counters, of which there is one for each hash slot in use.
inline constexpr std::size_t records_examined_max = 1'000;

// On a connection of its own. What cannot be looked at is said in the facts; it never fails.
[[nodiscard]] core::server_facts examine(const endpoint& where, const user_scope& user,
                                         core::time_point until);

}  // namespace holdfast::stores::redis
