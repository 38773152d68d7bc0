// Locks in an etcd cluster, in the layout of clientv3/concurrency.
#pragma once

#include <memory>

#include "stores/component.hpp"

namespace holdfast::stores::etcd {

[[nodiscard]] result<std::unique_ptr<store>> make_etcd_store(
    component_config config, std::shared_ptr<runtime::background> background);

}  // namespace holdfast::stores::etcd
