#include "output.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>

#include "say.hpp"

namespace holdfast::cli {

bool print(std::string_view text) noexcept {
  if (std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0) {
    return true;
  }
  say(std::string{"cannot write the output: "} + std::strerror(errno));
  return false;
}

}  // namespace holdfast::cli
