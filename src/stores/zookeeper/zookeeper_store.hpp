// Locks of a ZooKeeper ensemble, in the layout of Curator's recipes.
#pragma once

#include <memory>

#include "stores/component.hpp"

namespace holdfast::stores::zookeeper {

[[nodiscard]] result<std::unique_ptr<store>> make_zookeeper_store(
    component_config config, std::shared_ptr<runtime::background> background);

}  // namespace holdfast::stores::zookeeper
