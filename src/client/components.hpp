// Finds the libraries of stores that are not in every build.
#pragma once

#include <string_view>

#include <holdfast/result.hpp>

#include "stores/component.hpp"

namespace holdfast::detail {

// The component for NAME:// URLs: the one in the program, or else libholdfast_NAME.so, loaded now
// and for good. errc::unsupported says what to install or link.
[[nodiscard]] result<const stores::component*> find_component(std::string_view name);

}  // namespace holdfast::detail
