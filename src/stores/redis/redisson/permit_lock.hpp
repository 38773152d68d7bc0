// One permit of Redisson's semaphore whose permits expire, as something that is held.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "stores/redis/redisson/hash_lock.hpp"

namespace holdfast::stores::redis::redisson {

// Waits and is renewed as a hash_lock; only what is stored differs. An ask that was delayed beyond
// the release of its own attempt may take a permit for nobody, which nothing renews: it is back
// after at most one TTL.
class permit_lock final : public hash_lock {
 public:
  // `permits`: how many there are to be, if that was not set yet; zero: it must have been.
  permit_lock(std::shared_ptr<server> on, std::shared_ptr<channel_listener> messages,
              std::string key, std::uint32_t permits);

  // Without a latch: Redisson has none here.
  void release(const core::owner_id& id, core::time_point until, caller& by,
               on_removal done) override;
  result<lock_status> inspect(core::time_point until) override;
  result<void> break_with(fencing_token token, core::time_point until) override;

  [[nodiscard]] script_call release_script(std::string_view whose, std::string_view entry,
                                           std::string_view spared) const override;
  [[nodiscard]] script_call acquire_script(const ask_details& ask) const override;
  [[nodiscard]] bool tells_grants_apart() const noexcept override { return false; }
  [[nodiscard]] const scripts::script& renew_script() const noexcept override;
  [[nodiscard]] const std::string& renewed_key() const noexcept override { return timeouts_; }

 private:
  const std::string timeouts_;
  const std::string permits_;
};

}  // namespace holdfast::stores::redis::redisson
