#include "runtime/host.hpp"

#include <unistd.h>

#include <array>

namespace holdfast::runtime {

std::string host_name() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) return "unknown";
  return name.data();
}

std::int64_t process_id() noexcept { return ::getpid(); }

}  // namespace holdfast::runtime
