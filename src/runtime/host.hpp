// What this machine is called, and this process.
#pragma once

#include <cstdint>
#include <string>

namespace holdfast::runtime {

// "unknown" where the kernel does not say.
[[nodiscard]] std::string host_name();
[[nodiscard]] std::int64_t process_id() noexcept;

}  // namespace holdfast::runtime
