// Randomness from the kernel.
#pragma once

#include <cstdint>

#include "core/types.hpp"

namespace holdfast::runtime {

[[nodiscard]] std::uint64_t random_bits() noexcept;
[[nodiscard]] core::owner_id fresh_owner() noexcept;

}  // namespace holdfast::runtime
