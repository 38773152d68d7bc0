// A grant that counts only once replicas have it.
#pragma once

#include <functional>
#include <memory>

#include "stores/redis/redis_lock.hpp"

namespace holdfast::stores::redis {

// A grant that has just been made, and the connection that wrote it. Empty: another connection did:
// it was handed over, or an earlier ask was granted.
struct written_grant {
  core::owner_id id;
  core::grant granted;
  core::duration ttl{};  // what the attempt wants
  std::shared_ptr<channel> on;
};

// Waits (WAIT) until as many replicas as the store wants have the grant. WAIT counts for what its
// own connection has written, so a grant that another connection wrote is extended here first.
// Otherwise gives the lock back, so that nothing is held: errc::read_only, too few replicas; or
// errc::outcome_unknown if it is not known whether that arrived.
void await_replicas(redis_lock& of, written_grant what, core::time_point until, caller& by,
                    std::function<void(result<core::grant>)> done);

}  // namespace holdfast::stores::redis
