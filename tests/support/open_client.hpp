// Clients for tests and for the programs that tests start.
#pragma once

#include <string>

#include <holdfast/holdfast.hpp>

namespace holdfast::test {

// Beside the library's own URLs: session:/path, a session_server's socket.
[[nodiscard]] client open_client(const std::string& url, client_options options = {});

// The code of what `call` throws; errc{} if it does not throw. What it threw is in *what, if given.
template <class Call>
[[nodiscard]] errc thrown_by(Call&& call, std::string* what = nullptr) {
  try {
    call();
  } catch (const error& e) {
    if (what != nullptr) *what = e.what();
    return static_cast<errc>(e.code().value());
  }
  return errc{};
}

}  // namespace holdfast::test
