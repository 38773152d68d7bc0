// Renewing many locks together.
#pragma once

#include <memory>
#include <vector>

#include "stores/etcd/services.hpp"
#include "stores/store.hpp"

namespace holdfast::stores::etcd {

// One keep-alive for each session that they are under, and one transaction that reads all their
// keys: a session says nothing of a key that was deleted. Those of a retired session are moved.
void renew_all(std::shared_ptr<services> of, std::vector<held> leases, core::time_point until,
               caller& by, store::on_renewals done);

}  // namespace holdfast::stores::etcd
