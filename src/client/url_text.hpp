// The parts of a store URL, as texts and numbers.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include <holdfast/result.hpp>

#include "core/fail.hpp"

namespace holdfast::detail {

[[nodiscard]] inline auto bad_url(std::string message) {
  return fail(errc::invalid_argument, std::move(message));
}

// %40 is an @. `part`: what it is, for messages.
[[nodiscard]] result<std::string> decode_url(std::string_view text, std::string_view part);

[[nodiscard]] result<unsigned> url_number(std::string_view text, std::string_view part,
                                          unsigned least, unsigned most);

}  // namespace holdfast::detail
