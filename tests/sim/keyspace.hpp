// The data of one simulated Redis, and the commands that our scripts use on it.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "sim/reply.hpp"

namespace holdfast::sim {

// What a server knows besides its data.
class surroundings {
 public:
  surroundings() = default;
  surroundings(const surroundings&) = delete;
  surroundings& operator=(const surroundings&) = delete;
  virtual ~surroundings() = default;

  [[nodiscard]] virtual std::int64_t wall_us() = 0;
  // How many listened.
  virtual std::int64_t publish(std::string_view channel, std::string_view message) = 0;
  [[nodiscard]] virtual std::string run_id() const = 0;
};

struct stored {
  using list = std::deque<std::string>;
  using hash = std::map<std::string, std::string, std::less<>>;
  // Members by score, then by name, as Redis walks them.
  struct sorted_set {
    std::map<std::string, double, std::less<>> scores{};
    std::set<std::pair<double, std::string>> order{};
    [[nodiscard]] std::size_t size() const noexcept { return scores.size(); }
    friend bool operator==(const sorted_set&, const sorted_set&) = default;
  };
  std::variant<std::string, list, hash, sorted_set> value;
  std::optional<std::int64_t> expires_ms{};  // by the server's wall clock
  friend bool operator==(const stored&, const stored&) = default;
};

// A value type: a copy is a snapshot. Expired keys go when somebody looks, as far as anybody can
// tell the same as in Redis.
class keyspace {
 public:
  using entries = std::map<std::string, stored, std::less<>>;

  [[nodiscard]] stored* find(std::string_view key, std::int64_t now_ms);
  stored& put(std::string_view key, stored what);
  bool erase(std::string_view key, std::int64_t now_ms);
  // All that has not expired.
  [[nodiscard]] entries all(std::int64_t now_ms) const;

 private:
  entries entries_;
};

// Runs one command as Redis 7 does: words[0] is its name. A command that nobody needed yet is an
// error; to add one, add a line to the table in commands.cpp.
[[nodiscard]] reply execute(keyspace& data, surroundings& around,
                            std::span<const std::string_view> words);

// Errors of a script's call, which Redis words differently from those of a client's command.
inline constexpr std::string_view unknown_command = "ERR Unknown Redis command called from script";
inline constexpr std::string_view wrong_arity =
    "ERR Wrong number of args calling Redis command from script";

}  // namespace holdfast::sim
