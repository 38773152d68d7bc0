#include "store_url.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <holdfast/local.hpp>
#include <holdfast/status.hpp>

#include "say.hpp"

namespace holdfast::cli {
namespace {

constexpr std::size_t password_bytes_max = 4096;

// URLs with a host, which may have a user and a password in front of it.
struct host_scheme {
  std::string_view name;
  bool has_tls;
};
constexpr std::array<host_scheme, 11> host_schemes{{{"redis", false},
                                                    {"rediss", true},
                                                    {"redis+sentinel", false},
                                                    {"rediss+sentinel", true},
                                                    {"redis+cluster", false},
                                                    {"rediss+cluster", true},
                                                    {"redlock", false},
                                                    {"redlock+tls", true},
                                                    {"etcd", false},
                                                    {"etcd+tls", true},
                                                    {"zookeeper", false}}};

const host_scheme* host_scheme_of(std::string_view name) {
  const auto* const found = std::find_if(host_schemes.begin(), host_schemes.end(),
                                         [&](const host_scheme& one) { return one.name == name; });
  return found == host_schemes.end() ? nullptr : found;
}

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
  if (host_scheme_of(scheme) == nullptr) return {{}, {}, url};
  const auto at = url.rfind('@');
  const auto host = mark + 3;
  if (at == std::string_view::npos || at < host) return {url.substr(0, host), {}, url.substr(host)};
  return {url.substr(0, host), url.substr(host, at - host), url.substr(at + 1)};
}

// `plain`: characters that are left as they are, beside letters and digits.
std::string encoded(std::string_view text, std::string_view plain = {}) {
  std::string result;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool is_alphanumeric = byte < 0x80U && std::isalnum(byte) != 0;
    if (is_alphanumeric || plain.find(c) != std::string_view::npos) {
      result += c;
    } else {
      result += fmt::format("%{:02X}", byte);
    }
  }
  return result;
}

std::string_view options_of(std::string_view url) {
  const auto mark = url.find('?');
  return mark == std::string_view::npos ? std::string_view{} : url.substr(mark + 1);
}

bool has_option(std::string_view url, const std::string& name) {
  const auto options = "&" + std::string{options_of(url)};
  return options.find("&" + name + "=") != std::string::npos;
}

std::string with_option(std::string_view url, const std::string& name, std::string_view value) {
  const char* const before = url.find('?') == std::string_view::npos ? "?" : "&";
  return fmt::format("{}{}{}={}", url, before, name, encoded(value, "/._-"));
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

}  // namespace

bool looks_like_store(std::string_view text) {
  if (std::any_of(host_schemes.begin(), host_schemes.end(), [&](const auto& one) {
        return text.starts_with(one.name) && text.substr(one.name.size()).starts_with("://");
      })) {
    return true;
  }
  constexpr std::array<std::string_view, 3> schemes{"unix:/", "local:", "memory:"};
  return std::any_of(schemes.begin(), schemes.end(),
                     [&](std::string_view one) { return text.starts_with(one); });
}

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

std::string with_password_file(std::string_view url, const std::string& option,
                               const std::string& path) {
  const auto password = read_password(option, path);
  const auto [scheme, user, rest] = take_apart(url);
  if (scheme.empty() || user.find(':') != std::string_view::npos) return std::string{url};
  if (has_option(url, "password_file")) return std::string{url};
  std::error_code ignored;
  const auto full = std::filesystem::absolute(path, ignored);
  if (std::filesystem::is_regular_file(full, ignored)) {
    return with_option(url, "password_file", full.string());
  }
  return fmt::format("{}{}:{}@{}", scheme, user, encoded(password), rest);
}

std::string with_tls_variables(std::string_view url) {
  std::string result{url};
  const auto* const known = host_scheme_of(url.substr(0, url.find("://")));
  if (known == nullptr || !known->has_tls) return result;
  const auto take = [&](const char* variable, const char* option) {
    const char* const value = std::getenv(variable);
    if (value == nullptr || has_option(url, option)) return;
    // Set and empty is a mistake, and must not mean that the system's authorities are believed.
    result = with_option(result, option, value);
  };
  take("HOLDFAST_TLS_CA", "ca");
  take("HOLDFAST_TLS_SERVER_NAME", "server_name");
  // A key belongs to its certificate: never one from here and the other from there.
  if (has_option(url, "cert") || has_option(url, "key")) return result;
  take("HOLDFAST_TLS_CERT", "cert");
  take("HOLDFAST_TLS_KEY", "key");
  return result;
}

}  // namespace holdfast::cli
