// A number on a Redis server that is counted and waited for.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "core/counter.hpp"
#include "stores/counter.hpp"
#include "stores/redis/channel_listener.hpp"
#include "stores/redis/script_call.hpp"
#include "stores/redis/server.hpp"

namespace holdfast::stores::redis {

// A latch of ours, or a counter of Redisson's: they differ in their scripts and in their channel.
class redis_counter final : public store_counter,
                            public std::enable_shared_from_this<redis_counter> {
 public:
  // A waiter that hears nothing asks again after so long at most: messages can be lost.
  static constexpr core::duration quiet_max = std::chrono::seconds{5};

  redis_counter(std::shared_ptr<server> on, std::shared_ptr<channel_listener> messages,
                std::string key, const core::counter_kind& kind);

  std::unique_ptr<counter_attempt> begin(core::counter_request what, bool may_wait) override;

  // For attempts. `id`: names the request, should it be asked twice; `round`: of a latch, the one
  // that is waited for.
  [[nodiscard]] script_call script_of(const core::counter_request& what, const core::owner_id& id,
                                      std::string_view round) const;
  [[nodiscard]] server& on() const noexcept { return *server_; }
  [[nodiscard]] channel_listener& messages() const noexcept { return *messages_; }
  [[nodiscard]] const std::string& channel() const noexcept { return channel_; }
  // How soon a waiter asks that hears nothing.
  [[nodiscard]] core::duration ask_within() const noexcept {
    return core::ask_within(kind_, quiet_max);
  }

 private:
  [[nodiscard]] script_call latch_script(const core::counter_request& what,
                                         const core::owner_id& id, std::string_view round) const;
  [[nodiscard]] script_call redisson_script(const core::counter_request& what) const;

  const std::shared_ptr<server> server_;
  const std::shared_ptr<channel_listener> messages_;
  const std::string key_;
  const core::counter_kind kind_;
  const std::string channel_;
};

}  // namespace holdfast::stores::redis
