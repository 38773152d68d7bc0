// Store URLs, taken apart.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <holdfast/result.hpp>

#include "core/types.hpp"
#include "runtime/tls_context.hpp"

namespace holdfast::detail {

struct store_url {
  // replicas: a master and replicas that are named in any order.
  enum class kind {
    memory,
    local,
    unix_socket,
    tcp,
    replicas,
    sentinel,
    cluster,
    redlock,
    etcd,
    zookeeper
  };
  kind what{};
  std::string begins;  // "redis://", "local:": for messages
  std::string name;    // memory: which
  std::string path;    // unix: its socket; zookeeper: the chroot, or empty
  std::string host;
  std::uint16_t port = 6379;
  std::string user;
  std::string password;
  bool has_password = false;  // perhaps an empty one
  std::string password_file;
  bool has_tls = false;
  runtime::tls_settings tls;
  int database = 0;
  std::string prefix;
  std::uint64_t token_base = 0;
  std::size_t connections = 2;
  bool share_with_foreign = false;
  core::duration spin = std::chrono::microseconds{60};
  // How many replicas an acquisition waits for.
  unsigned replicas_awaited = 0;
  core::duration replica_timeout = std::chrono::milliseconds{200};
  // Where several are named: of sentinel, the Sentinels; of cluster, some of its nodes.
  struct node {
    std::string host;
    std::uint16_t port = 6379;
    friend bool operator==(const node&, const node&) = default;
  };
  std::vector<node> nodes;
  // sentinel:
  std::string master;
  std::string sentinel_user;
  std::string sentinel_password_file;
  // redlock:
  unsigned epoch = 1;
  core::duration node_timeout = std::chrono::milliseconds{50};
  core::duration max_ttl = std::chrono::seconds{60};
  // zookeeper:
  core::duration tick = std::chrono::seconds{2};
  std::optional<bool> open_to_all;
};

// errc::invalid_argument says which part is wrong and what would be right; it never repeats the
// part that may hold a password.
[[nodiscard]] result<store_url> parse_url(std::string_view text);

}  // namespace holdfast::detail
