// Finding redis-server on this machine.
#pragma once

#include <string>
#include <vector>

#include <holdfast/result.hpp>

namespace holdfast::stores::local {

// Where a redis-server binary is looked for. PATH comes last and decides only which binary runs,
// never where the server's folder is. It is ignored in set-user-id programs.
struct binary_search {
  std::vector<std::string> candidates{"/usr/bin/redis-server",
                                      "/usr/local/bin/redis-server",
                                      "/usr/sbin/redis-server",
                                      "/usr/local/sbin/redis-server",
                                      "/bin/redis-server",
                                      "/opt/redis/bin/redis-server",
                                      "/opt/redis-stack/bin/redis-server",
                                      "/opt/bitnami/redis/bin/redis-server"};
  bool path = true;
};
// Fails with errc::store_missing.
[[nodiscard]] result<std::string> find_server(const binary_search& search);

}  // namespace holdfast::stores::local
