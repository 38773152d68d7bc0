// Making failures, and showing what is in them: the words that every room's sources use.
#pragma once

#include <string>
#include <utility>

#include <holdfast/result.hpp>
#include <holdfast/untrusted.hpp>

namespace holdfast::detail {

[[nodiscard]] inline tl::unexpected<failure> fail(errc code, std::string message) {
  return tl::unexpected<failure>{failure{code, std::move(message), {}}};
}
[[nodiscard]] inline tl::unexpected<failure> fail(failure why) {
  return tl::unexpected<failure>{std::move(why)};
}

using untrusted::escape;

}  // namespace holdfast::detail

// Not in namespace holdfast itself, which is the users': both names are too general for that.
namespace holdfast::core {
using detail::escape;
using detail::fail;
}  // namespace holdfast::core
namespace holdfast::runtime {
using detail::escape;
using detail::fail;
}  // namespace holdfast::runtime
namespace holdfast::stores {
using detail::escape;
using detail::fail;
}  // namespace holdfast::stores
