// A master and its replicas that nobody watches: a person decides which of them is the master.
#pragma once

#include <memory>
#include <vector>

#include "stores/redis/deployment.hpp"
#include "stores/redis/dialer.hpp"

namespace holdfast::stores::redis {

// `among`: the servers, in any order. `addresses`: of each of them.
[[nodiscard]] std::unique_ptr<deployment> make_plain_replicas(
    std::vector<endpoint> among, std::vector<core::server_address> addresses);

}  // namespace holdfast::stores::redis
