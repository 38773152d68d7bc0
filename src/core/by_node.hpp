// What several nodes said, in one line.
#pragma once

#include <span>
#include <string>

#include <holdfast/error.hpp>

namespace holdfast::core {

// "; n1, n2: connection refused; n3: no answer in 50 ms": nodes that say the same share a clause,
// in the order of the first of each.
[[nodiscard]] std::string by_node(std::span<const node_answer> answers);

}  // namespace holdfast::core
