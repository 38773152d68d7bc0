// Several locks at once.
#pragma once

#include <optional>
#include <stop_token>
#include <vector>

#include <holdfast/duration.hpp>
#include <holdfast/export.hpp>
#include <holdfast/lease.hpp>
#include <holdfast/mutex.hpp>
#include <holdfast/result.hpp>

namespace holdfast {

// Acquires all of the locks, or none. They are of one client, each named once; the leases come in
// the order of the locks. Whatever order callers name them in, they do not deadlock: while one lock
// is waited for, only those before it in the order of their names are held. What is free is asked
// for together, which takes one round trip when all locks are. Sound on every store.
//
//   auto both = holdfast::acquire_all({client.mutex("from"), client.mutex("to")}, 5s);
//   transfer(both[0].token(), both[1].token());
//
// Thread-safe. A call that is stopped, times out or fails gives back what it got.

// More at once are refused: errc::invalid_argument.
inline constexpr std::size_t acquired_together_max = 256;

// Waits up to `wait`, without it up to the client's wait limit. Throws as mutex::acquire() does,
// errc::invalid_argument for locks of several clients or one lock named twice.
[[nodiscard]] HOLDFAST_API std::vector<lease> acquire_all(std::vector<mutex> locks,
                                                          const std::stop_token& stop = {});
[[nodiscard]] HOLDFAST_API std::vector<lease> acquire_all(std::vector<mutex> locks,
                                                          any_nanoseconds wait,
                                                          const std::stop_token& stop = {});

// Zero: asks once. Empty: not all were acquired in time, or the call was stopped.
[[nodiscard]] HOLDFAST_API std::optional<std::vector<lease>> try_acquire_all(
    std::vector<mutex> locks, any_nanoseconds wait = std::chrono::nanoseconds::zero(),
    const std::stop_token& stop = {});

// What acquire_all() would throw is returned as a failure.
[[nodiscard]] HOLDFAST_API result<std::vector<lease>> acquire_all_result(
    std::vector<mutex> locks, any_nanoseconds wait, const std::stop_token& stop = {});

}  // namespace holdfast
