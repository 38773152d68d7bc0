// How many permits a semaphore has.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include <holdfast/result.hpp>

#include "stores/zookeeper/connection.hpp"

namespace holdfast::stores::zookeeper {

// From now on, and also when nobody uses it.
void resize_semaphore(const std::shared_ptr<connection>& on, const std::string& path,
                      std::uint32_t permits, std::function<void(result<void>)> done);

}  // namespace holdfast::stores::zookeeper
