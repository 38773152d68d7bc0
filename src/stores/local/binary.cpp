#include "stores/local/binary.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <string_view>

#include "core/fail.hpp"

namespace holdfast::stores::local {

namespace {

bool executable(const std::string& path) noexcept {
  struct stat found {};
  return ::stat(path.c_str(), &found) == 0 && S_ISREG(found.st_mode) &&
         ::access(path.c_str(), X_OK) == 0;
}

}  // namespace

result<std::string> find_server(const binary_search& search) {
  for (const std::string& path : search.candidates) {
    if (executable(path)) return path;
  }
  const char* const variable = search.path ? ::secure_getenv("PATH") : nullptr;
  std::string_view left = variable != nullptr ? variable : "";
  while (!left.empty()) {
    const auto colon = left.find(':');
    const std::string_view folder = left.substr(0, colon);
    left.remove_prefix(colon == std::string_view::npos ? left.size() : colon + 1);
    if (!folder.starts_with('/')) continue;  // the working folder is nobody's promise
    if (std::string path = std::string{folder} + "/redis-server"; executable(path)) return path;
  }
  return fail(errc::store_missing,
              "local: needs redis-server; install it: apt install redis-server");
}

}  // namespace holdfast::stores::local
