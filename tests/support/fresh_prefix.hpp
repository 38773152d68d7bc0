// Keys of its own for each test, on servers that all tests of a process share.
#pragma once

#include <atomic>
#include <string>

namespace holdfast::test {

[[nodiscard]] inline std::string fresh_prefix() {
  static std::atomic<int> last{0};
  return "t" + std::to_string(++last) + "/";
}

}  // namespace holdfast::test
