// Taking a key back.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "core/release_machine.hpp"
#include "stores/etcd/services.hpp"
#include "stores/store.hpp"

namespace holdfast::stores::etcd {

struct removing {
  std::string folder;
  std::string key;
  // 0: whatever it is. Otherwise another one of this name is left alone: the key of a lock that was
  // lost and taken again.
  revision created = 0;
  // That it was under; 0: not known. Retired if the key may still be there in the end.
  lease_id lease = 0;
  // An earlier request of this kind went unanswered.
  bool is_repeated = false;
};

using on_removed = std::function<void(result<core::removal>)>;

// Asks again until `until`, as core::release_machine says.
void remove_key(const std::shared_ptr<services>& of, removing what, core::time_point until,
                caller& by, on_removed done);

// Once, with nobody who waits: `done` is called on any thread.
void remove_key_once(const std::shared_ptr<services>& of, const removing& what,
                     core::time_point until, on_removed done);

}  // namespace holdfast::stores::etcd
