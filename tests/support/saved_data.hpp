// Copies of a server's data, to put an old state back: what a crash leaves that loses the last
// writes.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "support/temp_dir.hpp"

namespace holdfast::test {

class saved_data {
 public:
  explicit saved_data(const std::filesystem::path& folder) : folder_{folder} {
    for (const char* name : {"dump.rdb", "appendonlydir"}) {
      if (!std::filesystem::exists(folder / name)) continue;
      std::filesystem::copy(folder / name, copy_.path() / name,
                            std::filesystem::copy_options::recursive);
      names_.emplace_back(name);
    }
  }
  // While the server is down.
  void put_back() const {
    for (const std::string& name : names_) {
      std::filesystem::remove_all(folder_ / name);
      std::filesystem::copy(copy_.path() / name, folder_ / name,
                            std::filesystem::copy_options::recursive);
    }
  }
  [[nodiscard]] bool empty() const { return names_.empty(); }

 private:
  const std::filesystem::path folder_;
  temp_dir copy_;
  std::vector<std::string> names_;
};

}  // namespace holdfast::test
