// One lock on a Redis server in the layout of Redisson's RFairLock.
#pragma once

#include <memory>
#include <string>

#include "stores/redis/redisson/hash_lock.hpp"

namespace holdfast::stores::redis::redisson {

// A hash_lock with a queue: a waiter has an entry there, and a channel of its own, on which it is
// told when it is the first and the lock is free.
class fair_lock final : public hash_lock {
 public:
  fair_lock(std::shared_ptr<server> at, std::shared_ptr<channel_listener> messages,
            std::string key);

  [[nodiscard]] script_call acquire_script(const ask_details& ask) const override;
  [[nodiscard]] std::string channel_of(std::string_view entry) const override;
  [[nodiscard]] std::string entry_of(const core::owner_id& id, core::duration ttl,
                                     std::string_view holder) const override;
  [[nodiscard]] core::duration ask_within(core::duration ttl) const override;

 protected:
  [[nodiscard]] script_call release_call(const release_details& what) const override;
  [[nodiscard]] script_call inspect_script() const override;
  [[nodiscard]] script_call break_script(std::string_view token) const override;
  [[nodiscard]] result<lock_status> read_inspected(reply_elements said) const override;

 private:
  const std::string queue_;
  const std::string places_;
};

}  // namespace holdfast::stores::redis::redisson
