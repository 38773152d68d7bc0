// How a client finds this store: see stores/component.hpp.
#include "stores/component.hpp"

#include <holdfast/version.hpp>

#include "stores/etcd/etcd_store.hpp"

const holdfast::stores::component* holdfast_component_etcd() {
  static constexpr holdfast::stores::component here{HOLDFAST_VERSION,
                                                    &holdfast::stores::etcd::make_etcd_store};
  return &here;
}
