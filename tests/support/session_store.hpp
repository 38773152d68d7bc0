// The client side of the test-only session store: see session_server.hpp for why there is one.
#pragma once

#include <memory>
#include <string>

#include "stores/store.hpp"

namespace holdfast::test {

// A store on the session_server that listens at `socket_path`, in this process or another.
[[nodiscard]] std::unique_ptr<stores::store> make_session_store(std::string socket_path);

}  // namespace holdfast::test
