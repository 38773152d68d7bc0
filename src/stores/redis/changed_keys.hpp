// What a server tells unasked, by client-side tracking: keys that others have changed since we read
// them.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "stores/redis/resp.hpp"

namespace holdfast::stores::redis {

// Not thread-safe.
struct changed_keys {
  // More than that are not told apart any more.
  static constexpr std::size_t kept_max = 4096;

  bool all = false;  // everything was flushed, or there were too many
  std::vector<std::string> keys{};

  [[nodiscard]] bool empty() const noexcept { return !all && keys.empty(); }

  // Takes up a push of the server: {"invalidate", its keys, or nothing for all of them}.
  void take(const reply_value& push) {
    const auto fields = elements_of(push);
    if (fields.size() != 2 || text_of(*fields[0]) != "invalidate") return;
    if (fields[1]->type != reply_kind::array) all = true;
    for (const auto* key : elements_of(*fields[1]))
      add(std::string{text_of(*key)});
  }
  void take(changed_keys more) {
    all = all || more.all;
    for (auto& key : more.keys)
      add(std::move(key));
  }

 private:
  void add(std::string key) {
    if (keys.size() == kept_max) all = true;
    if (all) {
      keys.clear();
    } else {
      keys.push_back(std::move(key));
    }
  }
};

}  // namespace holdfast::stores::redis
