// A folder of a test's own that goes when the test does.
#pragma once

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>

namespace holdfast::test {

// Not thread-safe. The path is short enough for a unix socket in it (108 bytes).
class temp_dir {
 public:
  temp_dir() : temp_dir{std::filesystem::temp_directory_path().string()} {}
  explicit temp_dir(std::string base) {
    constexpr std::size_t longest = 60;
    if (base.size() > longest) base = "/tmp";
    std::string pattern = base + "/holdfast-test-XXXXXX";
    if (::mkdtemp(pattern.data()) == nullptr) {
      throw std::system_error{errno, std::generic_category(), "mkdtemp " + pattern};
    }
    path_ = pattern;
  }
  temp_dir(const temp_dir&) = delete;
  temp_dir& operator=(const temp_dir&) = delete;
  ~temp_dir() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }
  [[nodiscard]] std::string file(const std::string& name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

}  // namespace holdfast::test
