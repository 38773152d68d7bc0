// What a lock on one Redis server promises.
#pragma once

#include <holdfast/guarantees.hpp>

namespace holdfast::stores::redis {

enum class reach {
  network,    // clients on any host
  this_host,  // a unix socket
};
[[nodiscard]] guarantees promises_of_cluster();
[[nodiscard]] guarantees promises_of_server(reach from);
// On a master with replicas, one of which may take over.
[[nodiscard]] guarantees promises_of_master();

}  // namespace holdfast::stores::redis
