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

// The same URL with a password, if it can have one (redis://, redlock://) and has none.
[[nodiscard]] std::string with_password(std::string_view url, std::string_view password);

// The first line of a file. Throws CLI::ValidationError that names `option`.
[[nodiscard]] std::string read_password(const std::string& option, const std::string& path);

// Whether text that was given for something else is a store's URL, which may hold a password.
[[nodiscard]] bool looks_like_store(std::string_view text);

}  // namespace holdfast::cli
