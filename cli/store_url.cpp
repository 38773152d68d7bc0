#include "store_url.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <fstream>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <holdfast/local.hpp>
#include <holdfast/status.hpp>

#include "say.hpp"

namespace holdfast::cli {
namespace {

constexpr std::size_t password_bytes_max = 4096;

// A URL with a host, cut in three. The last @ counts, wherever it is: a URL that the library will
// refuse must not be shown with its password either.
struct parts {
  std::string_view scheme;  // with ://; empty: a URL without a host
  std::string_view user;    // with its password, without the @
  std::string_view rest;
};

parts take_apart(std::string_view url) {
  const auto mark = url.find("://");
  const auto scheme = url.substr(0, mark);
  if (scheme != "redis" && scheme != "redlock") return {{}, {}, url};
  const auto at = url.rfind('@');
  const auto host = mark + 3;
  if (at == std::string_view::npos || at < host) return {url.substr(0, host), {}, url.substr(host)};
  return {url.substr(0, host), url.substr(host, at - host), url.substr(at + 1)};
}

std::string encoded(std::string_view text) {
  std::string result;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x80U && std::isalnum(byte) != 0) {
      result += c;
    } else {
      result += fmt::format("%{:02X}", byte);
    }
  }
  return result;
}

}  // namespace

std::string shown_store(std::string_view url) {
  if (url == "local:") {
    const auto server = local::status();
    return server ? fmt::format("local: ({})", escape(server->folder)) : "local:";
  }
  const auto [scheme, user, rest] = take_apart(url);
  return escape(std::string{scheme} + std::string{rest});
}

std::string without_password(std::string_view url) {
  const auto [scheme, user, rest] = take_apart(url);
  const auto name = user.substr(0, user.find(':'));
  return std::string{scheme} + (name.empty() ? "" : std::string{name} + "@") + std::string{rest};
}

std::string with_password(std::string_view url, std::string_view password) {
  const auto [scheme, user, rest] = take_apart(url);
  if (scheme.empty() || user.find(':') != std::string_view::npos) return std::string{url};
  return fmt::format("{}{}:{}@{}", scheme, user, encoded(password), rest);
}

bool looks_like_store(std::string_view text) {
  constexpr std::array<std::string_view, 6> schemes{"redis://", "rediss://", "redlock://",
                                                    "unix:/",   "local:",    "memory:"};
  return std::any_of(schemes.begin(), schemes.end(),
                     [&](std::string_view one) { return text.starts_with(one); });
}

std::string read_password(const std::string& option, const std::string& path) {
  std::ifstream file{path, std::ios::binary};
  std::string text(password_bytes_max + 1, '\0');
  if (file) file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (!file.is_open() || file.bad()) {
    throw CLI::ValidationError{
        option, fmt::format("{} cannot be read: {}", in_quotes(path), std::strerror(errno))};
  }
  text.resize(static_cast<std::size_t>(file.gcount()));
  text = text.substr(0, text.find_first_of("\r\n"));
  if (text.empty() || text.size() > password_bytes_max) {
    throw CLI::ValidationError{
        option, fmt::format("{} must have a password of 1 to {} bytes as its first line",
                            in_quotes(path), password_bytes_max)};
  }
  return text;
}

}  // namespace holdfast::cli
