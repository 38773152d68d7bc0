// Which failures pass by themselves, so that the same request may succeed a moment later.
#pragma once

#include <holdfast/error.hpp>

namespace holdfast::core {

// The one list of codes is that of condition::try_again, in error.cpp: what a caller may try again.
// What a machine tries again by itself is derived from it, and passing.cpp has the reasons:
//
// | code                            | try_again | is_passing | is_passing_for_release |
// |---------------------------------|-----------|------------|------------------------|
// | timed_out, stopped              | yes       | no         | no                     |
// | overloaded                      | yes       | no         | yes                    |
// | outcome_unknown                 | no        | yes        | yes                    |
// | others with this condition      | yes       | yes        | yes                    |
// | others with another condition   | no        | no         | no                     |
[[nodiscard]] bool is_passing(errc code) noexcept;
[[nodiscard]] bool is_passing_for_release(errc code) noexcept;

}  // namespace holdfast::core
