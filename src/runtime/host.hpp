// What this machine is called.
#pragma once

#include <string>

namespace holdfast::runtime {

// "unknown" where the kernel does not say.
[[nodiscard]] std::string host_name();

}  // namespace holdfast::runtime
