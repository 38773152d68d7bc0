// URL → store: the one place that knows every store.
#pragma once

#include <memory>

#include "client/url.hpp"
#include "runtime/background.hpp"
#include "stores/redlock/redlock_store.hpp"
#include "stores/store.hpp"

namespace holdfast::detail {

// Whether the files that the URL names can be used, so that a client learns it when it is made.
[[nodiscard]] result<void> check_files(const store_url& url);

// errc::unsupported if the store is in a component that is not here.
[[nodiscard]] result<std::unique_ptr<stores::store>> open_store(
    const store_url& url, std::shared_ptr<runtime::background> background);

// The server of a URL that names one; starts that of `local:` with the first connection.
[[nodiscard]] stores::redis::endpoint server_of(const store_url& url);

// For what is done to the nodes of a set, without a client.
[[nodiscard]] stores::redlock::redlock_config redlock_config_of(const store_url& url);

}  // namespace holdfast::detail
