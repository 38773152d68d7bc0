// A master that Redis Sentinels watch.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "stores/redis/deployment.hpp"
#include "stores/redis/dialer.hpp"

namespace holdfast::stores::redis {

// `of`: the Sentinels, each with what is needed to log in there. `master`: what they call it.
[[nodiscard]] std::unique_ptr<deployment> make_sentinels(std::vector<endpoint> of,
                                                         std::string master);

}  // namespace holdfast::stores::redis
