// One lock on a Redis server in the layout of Redisson's RLock, or of its RFencedLock.
#pragma once

#include <memory>
#include <string>

#include "stores/redis/channel_listener.hpp"
#include "stores/redis/redis_lock.hpp"

namespace holdfast::stores::redis::redisson {

// One ask of an attempt.
struct ask_details {
  const core::owner_id& id;
  const attempt_spec& wants;
  std::size_t number;         // of the attempt's asks
  std::string_view holder;    // what is told of the owner beside the id
  std::string_view entry;     // in the lock's queue; empty: the attempt does not wait there
  core::duration since_last;  // since the attempt's last ask that was answered
};

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

  // For attempts.
  [[nodiscard]] virtual script_call acquire_script(const ask_details& ask) const;
  [[nodiscard]] channel_listener& messages() const noexcept { return *messages_; }
  // Of the waiter with this entry. Empty entries are those of locks without a queue.
  [[nodiscard]] virtual std::string channel_of(std::string_view entry) const;
  // What a waiter is called in the lock's queue; empty: there is none.
  [[nodiscard]] virtual std::string entry_of(const core::owner_id& id, core::duration ttl,
                                             std::string_view holder) const;
  // A waiter that hears nothing asks again after so long at the latest.
  [[nodiscard]] virtual core::duration ask_within(core::duration ttl) const;
  // Whether a release can spare a later grant of the same attempt.
  [[nodiscard]] virtual bool tells_grants_apart() const noexcept { return true; }

 protected:
  hash_lock(std::shared_ptr<server> on, std::shared_ptr<channel_listener> messages, std::string key,
            std::string_view channel_for);

  // What of ours is to be given back, and how the answer is kept; empty: it is not.
  struct release_details {
    std::string_view whose;
    std::string_view entry{};
    std::string_view spared{};
    std::string_view latch{};
    std::string_view latch_kept_ms{};
  };
  [[nodiscard]] virtual script_call release_call(const release_details& what) const;
  [[nodiscard]] virtual script_call inspect_script() const;
  [[nodiscard]] virtual script_call break_script(std::string_view token) const;
  // What the inspect script says.
  [[nodiscard]] virtual result<lock_status> read_inspected(reply_elements said) const;
  [[nodiscard]] const std::string& channel() const noexcept { return channel_; }

 private:
  const std::shared_ptr<channel_listener> messages_;
  const std::string channel_;
  const std::string latch_prefix_;
  const std::string counter_;
};

}  // namespace holdfast::stores::redis::redisson
