// What the command line does with a store's URL besides handing it to the library: keep its
// password out of sight.
#pragma once

#include <string>
#include <string_view>

namespace holdfast::cli {

// The store for people to read: no user, no password.
[[nodiscard]] std::string shown_store(std::string_view url);

// The same URL, user and all, without its password.
[[nodiscard]] std::string without_password(std::string_view url);

// The same URL with the password of this file, if it can have one (redis://, redlock://, and these
// with TLS) and has none. The library reads the file for each connection, so that a password that
// was changed is picked up; what can be read only once, such as a pipe, is read here. Throws
// CLI::ValidationError that names `option`.
[[nodiscard]] std::string with_password_file(std::string_view url, const std::string& option,
                                             const std::string& path);

// The same URL with what HOLDFAST_TLS_CA, HOLDFAST_TLS_CERT, HOLDFAST_TLS_KEY and
// HOLDFAST_TLS_SERVER_NAME say, if it is one with TLS that does not say it itself.
[[nodiscard]] std::string with_tls_variables(std::string_view url);

// Whether text that was given for something else is a store's URL, which may hold a password.
[[nodiscard]] bool looks_like_store(std::string_view text);

}  // namespace holdfast::cli
