// The one result type of the project. Chosen here, once: C++20 has no std::expected, and a type
// that changed with the compiler's standard version would break the ABI.
#pragma once

#include <utility>

#include <tl/expected.hpp>

#include <holdfast/error.hpp>

namespace holdfast {

template <class T>
using result = tl::expected<T, failure>;

[[nodiscard]] inline tl::unexpected<failure> fail(errc code, std::string message) {
  return tl::unexpected<failure>{failure{code, std::move(message), {}}};
}
[[nodiscard]] inline tl::unexpected<failure> fail(failure what) {
  return tl::unexpected<failure>{std::move(what)};
}

}  // namespace holdfast
