// What stands after the ? of a store URL.
#pragma once

#include <string_view>

#include <holdfast/result.hpp>

#include "client/url.hpp"

namespace holdfast::detail {

// Into a URL whose other parts are known: which options there are depends on the kind of store.
[[nodiscard]] result<void> take_url_options(store_url& url, std::string_view query);

}  // namespace holdfast::detail
