// How a client finds this store: see stores/component.hpp.
#include "stores/component.hpp"

#include <holdfast/version.hpp>

#include "stores/zookeeper/zookeeper_store.hpp"

const holdfast::stores::component* holdfast_component_zookeeper() {
  static constexpr holdfast::stores::component here{
      HOLDFAST_VERSION, &holdfast::stores::zookeeper::make_zookeeper_store};
  return &here;
}
