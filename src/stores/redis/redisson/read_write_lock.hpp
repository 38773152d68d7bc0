// One lock on a Redis server in the layout of Redisson's RReadWriteLock.
#pragma once

#include <memory>
#include <string>

#include "stores/redis/redisson/hash_lock.hpp"

namespace holdfast::stores::redis::redisson {

// Waits as a hash_lock. An attempt that wants one unit reads, one that wants all writes. Each is an
// owner of its own with one hold, so a writer becomes a reader only by downgrade().
class read_write_lock final : public hash_lock {
 public:
  read_write_lock(std::shared_ptr<server> at, std::shared_ptr<channel_listener> messages,
                  std::string key);

  void downgrade(const core::owner_id& id, fencing_token token, core::duration ttl,
                 core::time_point until, caller& by, on_renewal done) override;

  [[nodiscard]] script_call acquire_script(const ask_details& ask) const override;
  [[nodiscard]] const scripts::script& renew_script() const noexcept override;

 protected:
  [[nodiscard]] script_call release_call(const release_details& what) const override;
  [[nodiscard]] script_call inspect_script() const override;
  [[nodiscard]] script_call break_script(std::string_view token) const override;
};

}  // namespace holdfast::stores::redis::redisson
