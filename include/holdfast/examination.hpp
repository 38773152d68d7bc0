// What would void a store's guarantees, found out by asking its servers: `holdfast doctor`.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <holdfast/export.hpp>
#include <holdfast/result.hpp>

namespace holdfast {

// One thing that was found. The texts are printable, and never hold a secret.
struct finding {
  enum class severity {
    danger,   ///< a guarantee is void, or will be by what happens every day
    warning,  ///< a guarantee is void once something goes wrong, or locking suffers
    note,     ///< nothing is wrong with it, or it could not be looked at
  };
  severity how{};
  std::string about{};  ///< a word for programs: "eviction", "persistence"; docs/doctor.md has them
  std::string node{};   ///< the server's; empty: all of them
  std::string what{};   ///< what is so
  std::string voids{};  ///< what that means for locks
  std::string advice{};  ///< what to do
  friend bool operator==(const finding&, const finding&) = default;
};
[[nodiscard]] HOLDFAST_API std::string_view to_string(finding::severity how) noexcept;

struct examination {
  std::vector<finding> findings{};  ///< the most dangerous first
  std::size_t servers = 0;          ///< that the URL names
  std::size_t answered = 0;         ///< that could be looked at
  // Whether there is anything but notes.
  [[nodiscard]] bool is_sound() const noexcept {
    return findings.empty() || findings.front().how == finding::severity::note;
  }
};

inline constexpr std::chrono::milliseconds examination_patience{10'000};

// Looks at the servers behind a URL, on connections of its own. It leaves nothing behind: what it
// writes, to find out what it may, are keys of its own that it deletes. Locks are not touched.
// errc::store_unreachable if no server answers, or what the only server refused the login with;
// errc::unsupported for memory:, which has no server.
[[nodiscard]] HOLDFAST_API result<examination> examine(
    std::string_view url, std::chrono::milliseconds timeout = examination_patience);

// The least that a user needs to be allowed on the servers behind this URL, as one command of
// Redis 7 for redis-cli. `user`: letters, digits, - and _.
[[nodiscard]] HOLDFAST_API result<std::string> acl_rule(std::string_view url,
                                                        std::string_view user = "holdfast");

}  // namespace holdfast
