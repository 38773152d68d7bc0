// The C library's result codes as failures.
#pragma once

#include <string_view>

#include <holdfast/error.hpp>

namespace holdfast::stores::zookeeper {

// What was asked for may have been done, but nobody says so.
[[nodiscard]] bool is_unanswered(int rc) noexcept;
// `what`: that was asked for, as "create the lock's node".
[[nodiscard]] failure failure_of(int rc, std::string_view what);

}  // namespace holdfast::stores::zookeeper
