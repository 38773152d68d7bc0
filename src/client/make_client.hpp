// A client on a store of one's own making: for tests of stores.
#pragma once

#include <memory>

#include <holdfast/client.hpp>

#include "stores/store.hpp"

namespace holdfast::detail {

// Throws errc::invalid_argument for options that make no sense.
[[nodiscard]] client make_client(std::unique_ptr<stores::store> store, client_options options);

}  // namespace holdfast::detail
