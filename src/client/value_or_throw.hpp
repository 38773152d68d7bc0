// Results below the public API become exceptions in it.
#pragma once

#include <type_traits>
#include <utility>

#include <holdfast/result.hpp>

namespace holdfast::detail {

template <class T>
T value_or_throw(result<T> from) {
  if (!from) throw error{std::move(from.error())};
  if constexpr (!std::is_void_v<T>) return std::move(*from);
}

}  // namespace holdfast::detail
