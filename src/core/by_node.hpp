// What nodes said, as one text: nodes that said the same are named together.
#pragma once

#include <span>
#include <string>

#include <holdfast/error.hpp>

namespace holdfast::core {

// "n1, n2: no answer; n3 refused: another set", in the order of the first of each. Empty texts are
// left out.
[[nodiscard]] std::string by_node(std::span<const node_answer> answers);

}  // namespace holdfast::core
