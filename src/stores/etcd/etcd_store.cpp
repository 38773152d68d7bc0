#include "stores/etcd/etcd_store.hpp"

#include "core/fail.hpp"

namespace holdfast::stores::etcd {

result<std::unique_ptr<store>> make_etcd_store(component_config config,
                                               std::shared_ptr<runtime::background> background) {
  static_cast<void>(config), static_cast<void>(background);
  return fail(errc::unsupported, "etcd:// is not there yet");
}

}  // namespace holdfast::stores::etcd
