// A command and what it started, as far as it stayed in the command's process group.
#pragma once

#include <sys/types.h>

#include <cstdint>

namespace holdfast::cli {

// Nanoseconds of CLOCK_BOOTTIME, the clock leases are counted on: it goes on during suspend.
[[nodiscard]] std::int64_t boottime_ns() noexcept;

// True while the group has a member that is not a zombie. Reads /proc, because kill(-group, 0)
// also counts zombies, and the leader is kept as one so that its number is not given to another.
// Costs about a millisecond per thousand processes. Says true when /proc cannot be read.
[[nodiscard]] bool group_alive(pid_t group);

// Sends to every member. Zero or one for a group would mean others: ignored.
void signal_group(pid_t group, int number) noexcept;

// Takes leave of children that this process did not start: as the first process of a container it
// is given every orphan. Leaves `own` alone.
void reap_orphans(pid_t own) noexcept;

// Waits up to `limit_ms` for the group to be gone; false if it is not.
bool wait_group_gone(pid_t group, int limit_ms);

}  // namespace holdfast::cli
