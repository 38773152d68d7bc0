// The one result type of the project. Chosen here, once: C++20 has no std::expected, and a type
// that changed with the compiler's standard version would break the ABI.
#pragma once

#include <tl/expected.hpp>

#include <holdfast/error.hpp>

namespace holdfast {

template <class T>
using result = tl::expected<T, failure>;

}  // namespace holdfast
