// A caller that waits for a reply on a channel; for channel*.cpp only.
#pragma once

#include <atomic>
#include <memory>
#include <utility>

#include "stores/redis/channel.hpp"

namespace holdfast::stores::redis {

class channel::pending_call final : public waiting,
                                    public std::enable_shared_from_this<pending_call> {
 public:
  // Made on the thread that waits for it, if one does.
  pending_call(channel& of, core::time_point patience, bool alone_there, on_reply told)
      : until{patience}, alone{alone_there}, done{std::move(told)}, on_{of} {}

  void wait() override;
  void watch(timers& by) override;
  // On the caller's turn: calls `done`.
  void tell();

  const core::time_point until;
  const bool alone;
  const std::shared_ptr<runtime::parker> sleeper = runtime::parker::of_this_thread();

  // Protected by the channel's mutex.
  bool waits = false;  // a thread waits for this call now
  bool leads = false;
  timers* watched_by = nullptr;  // null: a thread waits

  // Set last: with it, no mutex is needed to read the rest.
  std::atomic<bool> over{false};
  result<reply> outcome;
  on_reply done;

 private:
  void give_up();
  [[nodiscard]] failure no_reply() const;

  channel& on_;
};

}  // namespace holdfast::stores::redis
