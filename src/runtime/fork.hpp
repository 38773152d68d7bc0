// Noticing fork(): a child that used its parent's connections, threads and ids would be a second
// owner of the same locks.
#pragma once

#include <cstdint>

namespace holdfast::runtime {

// Goes up in every child of a process that uses the library.
[[nodiscard]] std::uint64_t fork_generation() noexcept;

}  // namespace holdfast::runtime
