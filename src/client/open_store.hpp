// URL → store: the one place that knows every store.
#pragma once

#include <memory>

#include "client/url.hpp"
#include "runtime/background.hpp"
#include "stores/store.hpp"

namespace holdfast::detail {

[[nodiscard]] std::unique_ptr<stores::store> open_store(
    const store_url& url, std::shared_ptr<runtime::background> background);

}  // namespace holdfast::detail
