// One lock on a Redis server in the layout of Redisson's RLock, or of its RFencedLock.
#pragma once

#include <memory>
#include <string>

#include "stores/redis/redis_lock.hpp"
#include "stores/redis/redisson/channel_listener.hpp"

namespace holdfast::stores::redis::redisson {

// Who waits listens to the lock's channel and asks when a release is told there: whoever asks first
// has it. What is left of the native lock's work is the same: releases that nobody waits for, asks
// that must not overtake them, renewals.
class hash_lock : public redis_lock {
 public:
  hash_lock(std::shared_ptr<server> on, std::shared_ptr<channel_listener> messages, std::string key,
            const core::lock_kind& kind);

  std::unique_ptr<attempt> begin(attempt_spec what) override;
  // With a latch: an answer that was lost is given again when the release is repeated, so that it
  // is known how it ended. A release that nobody waits for needs none: repeating it is harmless.
  void release(const core::owner_id& id, core::time_point until, caller& by,
               on_removal done) override;
  result<lock_status> inspect(core::time_point until) override;
  // Token zero: whatever it is.
  result<void> break_with(fencing_token token, core::time_point until) override;

  [[nodiscard]] script_call release_script(std::string_view whose, std::string_view entry,
                                           std::string_view spared) const override;
  using redis_lock::release_script;
  [[nodiscard]] const scripts::script& renew_script() const noexcept override;

  // For attempts. `ask`: its number; `holder`: what the owner's field says beside the id.
  [[nodiscard]] virtual script_call acquire_script(const core::owner_id& id, core::duration ttl,
                                                   std::size_t ask, std::string_view holder) const;
  [[nodiscard]] channel_listener& messages() const noexcept { return *messages_; }
  [[nodiscard]] const std::string& channel() const noexcept { return channel_; }
  // Whether a release can spare a later grant of the same attempt.
  [[nodiscard]] virtual bool tells_grants_apart() const noexcept { return true; }

 protected:
  hash_lock(std::shared_ptr<server> on, std::shared_ptr<channel_listener> messages, std::string key,
            std::string_view channel_for);

 private:
  const std::shared_ptr<channel_listener> messages_;
  const std::string channel_;
  const std::string latch_prefix_;
  const std::string counter_;
};

}  // namespace holdfast::stores::redis::redisson
