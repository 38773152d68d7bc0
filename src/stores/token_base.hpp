// Tokens that start higher than the store's own, for locks that have moved from another store.
#pragma once

#include <cstdint>
#include <memory>

#include "stores/store.hpp"

namespace holdfast::stores {

// Tokens stay below 2^53 however far the store counts: no store comes near the other half.
inline constexpr std::uint64_t token_base_max = std::uint64_t{1} << 52;

// A store whose tokens are those of `inner` and `base` more, wherever they are shown or taken; zero
// stays no token. What the store keeps, and its other clients see, is as before.
[[nodiscard]] std::unique_ptr<store> with_token_base(std::unique_ptr<store> inner,
                                                     std::uint64_t base);

}  // namespace holdfast::stores
