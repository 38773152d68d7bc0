// What a user has to be allowed on a server: the one table, from which the ACL rule is made, and by
// which an examination finds out what is missing.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/deployment.hpp"
#include "stores/redis/channel.hpp"

namespace holdfast::stores::redis {

// Which locks the server keeps.
enum class locks_kept { by_one_server, in_a_cluster, on_a_quorum };

struct right {
  std::string_view command;  // as access rules call it
  // A command that needs it and does no harm. In place of KEY, HASH, LIST, ZSET and CHANNEL stand
  // names of our own.
  std::string_view probe;
  unsigned needed;  // where: one bit for each of locks_kept
  // What there is not without it. Essential: no locks at all.
  std::string_view used_for = "locking";
  bool essential = true;
};
[[nodiscard]] std::span<const right> all_rights() noexcept;

struct user_scope {
  locks_kept locks = locks_kept::by_one_server;
  std::string prefix{};
  bool selects_database = false;
  bool awaits_replicas = false;
  bool seeks_master = false;  // among servers that are named: each is asked for its part
};

// The elements of the rule: patterns of keys and channels, and commands.
[[nodiscard]] std::vector<std::string> rule_elements(const user_scope& of);
// As one command for redis-cli, with PASSWORD where the password is to stand.
[[nodiscard]] std::string rule_text(const user_scope& of, std::string_view user);

// Tries each of them on this connection, which is for nothing else afterwards.
[[nodiscard]] result<std::vector<core::server_facts::missing_right>> missing_rights(
    channel& on, const user_scope& of, core::time_point until);

}  // namespace holdfast::stores::redis
