#include "runtime/password_file.hpp"

#include <array>
#include <cerrno>
#include <fstream>
#include <string_view>
#include <system_error>

#include "core/fail.hpp"

namespace holdfast::runtime {

namespace {

constexpr std::size_t password_bytes_max = 4096;

}  // namespace

result<std::string> read_password(const std::string& path) {
  std::array<char, password_bytes_max + 1> bytes{};
  std::ifstream file{path, std::ios::binary};
  const int error = errno;
  if (file) file.read(bytes.data(), bytes.size());
  if (!file.is_open() || file.bad()) {
    return fail(errc::not_authenticated, "the password file " + escape(path) + " cannot be read: " +
                                             std::generic_category().message(error));
  }
  const std::string_view all{bytes.data(), static_cast<std::size_t>(file.gcount())};
  const auto first = all.substr(0, all.find_first_of("\r\n"));
  if (first.empty() || first.size() > password_bytes_max) {
    return fail(errc::not_authenticated,
                "the password file " + escape(path) + " must have a password of 1 to " +
                    std::to_string(password_bytes_max) + " bytes as its first line");
  }
  return std::string{first};
}

}  // namespace holdfast::runtime
