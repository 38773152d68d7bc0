// Stores that are libraries of their own, libholdfast_NAME: who does not use them needs none of
// the packages they need. The client finds one that is linked into the program, or loads it.
//
// A component has its own copy of what it uses of core and runtime: the library exports nothing
// but the public headers, and nothing of it is global state that both would have to share. What
// passes between the two is store.hpp and what stands here, so their versions must be the same.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <holdfast/export.hpp>
#include <holdfast/result.hpp>

#include "runtime/background.hpp"
#include "runtime/tls_context.hpp"
#include "stores/store.hpp"

namespace holdfast::stores {

// A store URL, as far as it is for a component.
struct component_config {
  struct server {
    std::string host;
    std::uint16_t port = 0;
  };
  std::vector<server> servers{};
  std::string user{};
  std::string password{};
  std::string password_file{};
  bool has_tls = false;
  runtime::tls_settings tls{};
  std::string prefix{};
  // zookeeper: where all locks lie, "" or "/path"; how late the servers hear of a session, twice
  // that; whether every client may change what this one creates. Empty: if it has no user.
  std::string chroot{};
  core::duration tick{};
  std::optional<bool> open_to_all{};
};

struct component {
  // HOLDFAST_VERSION of the one that built it. First: it is read before the rest is relied on.
  const char* version;
  // Does not connect: a server that is away is an outage, not a mistake.
  result<std::unique_ptr<store>> (*open)(component_config config,
                                         std::shared_ptr<runtime::background> background);
};

}  // namespace holdfast::stores

extern "C" {
// Each component defines one, called after it.
HOLDFAST_API const holdfast::stores::component* holdfast_component_etcd();
HOLDFAST_API const holdfast::stores::component* holdfast_component_zookeeper();
}
